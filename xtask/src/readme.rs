//! `pkg/README.md`: the repository's, as somebody reads it who has only the package.

use crate::Result;
use std::fs;
use std::path::Path;

/// Where the files are that a link of the README names.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The section on a checkout of the repository.
const CHECKOUT: &str = "Try it";

/// Writes the file.
pub(crate) fn write(root: &Path) -> Result<()> {
    let text = packaged(&fs::read_to_string(root.join("README.md"))?)?;
    Ok(fs::write(root.join("pkg/README.md"), text)?)
}

/// Without the section on a checkout, and with links that lead to the repository.
fn packaged(readme: &str) -> Result<String> {
    let head = format!("\n## {CHECKOUT}\n");
    let (before, rest) = readme.split_once(&head).ok_or(format!("README.md has no section `{CHECKOUT}`"))?;
    let (_, after) = rest.split_once("\n## ").ok_or(format!("README.md ends with `{CHECKOUT}`"))?;
    Ok(linked(&format!("{before}\n## {after}")))
}

/// Relative links as addresses.
fn linked(text: &str) -> String {
    let mut parts = text.split("](");
    let mut linked = parts.next().unwrap_or_default().to_owned();
    let mut label = linked.clone();
    for part in parts {
        linked.push_str("](");
        let is_elsewhere = part.starts_with("https://") || part.starts_with('#');
        if !is_elsewhere {
            let is_image = label.rfind('[').is_some_and(|at| label[..at].ends_with('!'));
            linked.push_str(&format!("{REPOSITORY}/{}/main/", if is_image { "raw" } else { "blob" }));
        }
        linked.push_str(part);
        part.clone_into(&mut label);
    }
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f38_a_checkout_is_left_out_and_links_lead_to_the_repository() -> Result<()> {
        let readme = "# It\n\n## Try it\n\nnpm start\n\n## Use it\n[page](docs/a.md), [site](https://b.c), \
                      [part](#use-it), ![cost](a.svg)\n";
        let expected = format!(
            "# It\n\n## Use it\n[page]({REPOSITORY}/blob/main/docs/a.md), [site](https://b.c), \
             [part](#use-it), ![cost]({REPOSITORY}/raw/main/a.svg)\n"
        );
        assert_eq!(packaged(readme)?, expected);
        assert!(packaged("# It\n").is_err());
        Ok(())
    }
}
