use super::super::html::{is_html, shape, text};
use super::super::text::count;

#[test]
fn f39_s2_11_every_tag_becomes_what_it_says() {
    for (html, expected) in [
        ("a\n  b", "a b"),
        ("a<!--x-->b<!-- never closed", "ab"),
        ("1 < 2 a<3 <b>x</b>", "1 < 2 a<3 x"),
        ("<?php x ?>y<!x>z", "yz"),
        ("x<p", "x<p"),
        // Quotes hold what looks like the end of a tag; one that nothing closes holds nothing.
        ("<i x=\"a>b\">y", "y"),
        ("<i x='>' y=\"'>\">z", "z"),
        ("<i x='>y", "y"),
        ("<script>a</b>c</SCRIPT >b<style>d</style>e<svg/>f", "bef"),
        ("a<script>b", "a"),
        ("<title>T</title>x", "# T\nx"),
        ("a<h1>A</h1>b<h6>B</h6>c<h7>C</h7>d", "a\n# A\nb\n###### B\ncCd"),
        ("<img alt=' A b '><img alt=' '><img>x", "[image: A b]x"),
        ("<ul><li> One</li>two<li>Three</ul>", "- One\ntwo\n- Three"),
        ("<tr><th>a</th><td>b</td></tr><tr><td>c</td></tr>", "a | b\nc"),
        ("x<pre>a  b\nc\rd\r\ne</pre>f  g\nh", "x\na  b\nc d\ne\nf g h"),
        ("<pre><pre>a  b</pre>c  d</pre>e  f</pre>g  h", "a  b\nc  d\ne f\ng h"),
        ("<p>-</p><p>|</p><p># </p><div>x</div>y", "x\ny"),
        // Links that lead somewhere say where, once.
        ("<a href=\"/p?a=1&amp;b=2\">t</a> next", "t (/p?a=1&b=2) next"),
        ("<a href='http://x.example'>t </a> next", "t  (http://x.example) next"),
        ("<a download data-href=/no HREF = /p class=c>t</a>", "t (/p)"),
        ("<a href=#part>t</a> <a href=/p></a><a>u</a></a>", "t u"),
        ("<a href=http://x.example>see http://x.example/</a>", "see http://x.example/"),
        // Entities, and what is none.
        ("&amp;&lt;&#65;&#x42;&#X43;&euro;&nope;&#7;&", "&<ABC€&nope;&#7;&"),
        ("&#x001F600;&#x0001F600;", "😀&#x0001F600;"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn f39_s2_11_a_page_begins_as_one_or_has_eight_of_the_common_tags_among_its_first_400() {
    let others = |count: usize| "<x>".repeat(count);
    for (html, expected) in [
        (" <!DOCTYPE HTML>".to_string(), true),
        ("<HTML lang=en>".to_string(), true),
        ("<p>".repeat(7), false),
        ("<p>".repeat(8), true),
        ("<span></a>".repeat(4), true),
        ("<paper>".repeat(8), false),
        (format!("x{}", "<p>".repeat(8)), false),
        (format!("<?xml?>{}", "<p>".repeat(8)), false),
        (others(392) + &"<p>".repeat(8), true),
        (others(393) + &"<p>".repeat(8), false),
    ] {
        assert_eq!(is_html(&html), expected, "{html}");
    }
}

/// A page of so many links of a menu, lines of prose and headings.
fn page(links: usize, lines: usize, headings: usize) -> String {
    let mut html = "<html>".to_string();
    (0..links).for_each(|nth| html += &format!("<li><a href=/{nth}>Link {nth}</a></li>"));
    for (tag, name, count) in [("p", "Line", lines), ("h2", "Part", headings)] {
        (0..count).for_each(|nth| html += &format!("<{tag}>{name} {nth}</{tag}>"));
    }
    html
}

#[test]
fn f39_s2_11_of_a_page_headings_come_first_then_prose_then_menus() {
    let head = |html: &str| {
        format!("[HTML of {} characters as text; scripts, styles and markup left out]\n", count(html))
    };
    let html = page(2, 2, 2);
    let whole = format!("{}- Link 0 (/0)\n- Link 1 (/1)\nLine 0\nLine 1\n## Part 0\n## Part 1", head(&html));
    assert_eq!(shape(&html, count(&whole)), whole);
    let cut = |html: &str, room: usize| {
        let head = head(html);
        shape(html, count(&head) + room).strip_prefix(&head).unwrap_or_default().to_string()
    };
    let least = count(&whole) - count(&head(&html)) - 1;
    assert_eq!(cut(&html, least), "[… 2 lines left out …]\nLine 0\nLine 1\n[… 2 lines left out …]");
    let run = |name: &str, count: usize| (0..count).map(|nth| format!("{name} {nth}\n")).collect::<String>();
    let ends =
        format!("{}[… 29 lines left out …]\n{}[… 35 lines left out …]", run("Line", 11), run("## Part", 5));
    assert_eq!(cut(&page(4, 40, 40), 200), format!("[… 4 lines left out …]\n{ends}"));
    let links: String = (0..4).map(|nth| format!("- Link {nth} (/{nth})\n")).collect();
    let lines = format!("{links}[… 36 lines left out …]\n{}", run("Line", 4));
    assert_eq!(cut(&page(40, 4, 0), 120), lines.trim_end());
}
