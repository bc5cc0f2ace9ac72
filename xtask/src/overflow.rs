//! `js/generated/overflow.ts`: what errors of providers say of a prompt that was too long, so that JavaScript knows it
//! before the engine is there. From the tables in the engine's source.

use crate::Result;
use std::fs;
use std::path::Path;
use syn::{Expr, ExprLit, Item, Lit};

const SOURCE: &str = "crates/wire/src/provider/overflow.rs";

/// Its tables, with their types in JavaScript.
const TABLES: [(&str, &str); 3] = [
    ("CODES", "readonly string[]"),
    ("MESSAGES", "readonly (readonly string[])[]"),
    ("OTHER", "readonly string[]"),
];

/// Writes the file where it is not what the tables say.
pub(crate) fn write(root: &Path) -> Result<()> {
    let source = syn::parse_file(&fs::read_to_string(root.join(SOURCE))?)?;
    let mut text = format!("/** Made by the build from `{SOURCE}`. */\n");
    for (name, kind) in TABLES {
        let table = source.items.iter().find_map(|item| match item {
            Item::Const(table) if table.ident == name => Some(&table.expr),
            _ => None,
        });
        let value = literal(table.ok_or(format!("{SOURCE} has no table `{name}`"))?)?;
        text.push_str(&format!("\nexport const {name}: {kind} = {value};\n"));
    }
    let file = root.join("js/generated/overflow.ts");
    if fs::read_to_string(&file).is_ok_and(|written| written == text) {
        return Ok(());
    }
    println!("build: overflow");
    fs::create_dir_all(root.join("js/generated"))?;
    Ok(fs::write(file, text)?)
}

/// Lists of texts as JavaScript writes them.
fn literal(value: &Expr) -> Result<String> {
    match value {
        Expr::Reference(to) => literal(&to.expr),
        Expr::Array(list) => {
            let parts = list.elems.iter().map(literal).collect::<Result<Vec<_>>>()?;
            Ok(format!("[{}]", parts.join(", ")))
        }
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if text.value().is_ascii() => {
            Ok(format!("{:?}", text.value()))
        }
        _ => Err(format!("{SOURCE}: a table has more than texts").into()),
    }
}
