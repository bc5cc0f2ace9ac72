//! Where a source could be wrong in a small way, and with what.
//!
//! Only what runs is changed: no constants, patterns, types or tests. What a macro is given is left alone, so texts
//! that are put together from parts stay as they are.

use super::Mutant;
use super::edit::Edits;
use crate::Result;
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Arm, Attribute, BinOp, Block, Expr, Item, Lit, Pat, ReturnType, Signature, Stmt, UnOp};

/// Methods that say yes or no, whose answer is turned around.
const YES_OR_NO: [&str; 13] = [
    "is_some",
    "is_none",
    "is_ok",
    "is_err",
    "is_empty",
    "is_some_and",
    "is_none_or",
    "contains",
    "contains_key",
    "starts_with",
    "ends_with",
    "any",
    "all",
];

/// Methods without which a test could see no difference: they spare time or memory.
const UNSEEN: [&str; 5] = ["breathe", "reserve", "reserve_exact", "shrink_to_fit", "shrink_to"];

pub(super) struct Found {
    pub(super) mutants: Vec<Mutant>,
    pub(super) edits: Edits,
}

/// The files and folders of the modules that a file declares for tests alone.
pub(super) fn tests_of(path: &Path, source: &str) -> Result<Vec<PathBuf>> {
    let folder = match path.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs" | "lib.rs") => path.parent().unwrap_or(path).to_path_buf(),
        _ => path.with_extension(""),
    };
    let mut tests = Vec::new();
    for item in syn::parse_file(source)?.items {
        if let Item::Mod(module) = item
            && module.content.is_none()
            && is_test(&module.attrs)
        {
            let name = folder.join(module.ident.to_string());
            tests.extend([name.with_extension("rs"), name]);
        }
    }
    Ok(tests)
}

/// The mutants of a file, numbered from the one after `last`, without those whose keys are in `without`.
pub(super) fn find(file: &str, source: &str, without: &HashSet<&str>, last: usize) -> Result<Found> {
    let found = Found { mutants: Vec::new(), edits: Edits::default() };
    let mut finder =
        Finder { source, file, without, last, of: String::new(), function: String::new(), found };
    finder.visit_file(&syn::parse_file(source)?);
    Ok(finder.found)
}

struct Finder<'s> {
    source: &'s str,
    file: &'s str,
    without: &'s HashSet<&'s str>,
    last: usize,
    /// The type whose functions are visited.
    of: String,
    function: String,
    found: Found,
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test")
            || (path.is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test")))
    })
}

/// `let` in a condition: both sides of its `&&` must be true.
fn binds(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(both) => binds(&both.left) || binds(&both.right),
        Expr::Paren(inner) => binds(&inner.expr),
        _ => false,
    }
}

/// Is turned around where it is a condition. Comparisons, and what [`YES_OR_NO`] names, are changed wherever they stand.
fn is_plain(condition: &Expr) -> bool {
    match condition {
        Expr::Path(_) | Expr::Field(_) | Expr::Call(_) | Expr::Macro(_) => true,
        Expr::MethodCall(call) => !YES_OR_NO.contains(&call.method.to_string().as_str()),
        Expr::Unary(not) => matches!(not.op, UnOp::Not(_)) && is_plain(&not.expr),
        _ => false,
    }
}

/// The method or the function that a statement is about.
fn called(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Try(inner) => called(&inner.expr),
        Expr::Await(inner) => called(&inner.base),
        Expr::MethodCall(call) => Some(call.method.to_string()),
        Expr::Call(_) | Expr::Assign(_) => Some(String::new()),
        Expr::Binary(binary) => match binary.op {
            BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::BitOrAssign(_) | BinOp::BitAndAssign(_) => {
                Some(String::new())
            }
            _ => None,
        },
        _ => None,
    }
}

impl Finder<'_> {
    /// Notes a mutant; `None` when it is one that is left out.
    fn note(&mut self, operator: &'static str, text: &Range<usize>, to: &str) -> Option<usize> {
        let words = self.source.get(text.clone())?.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = words.chars().take(120).collect();
        let number = self.last + self.found.mutants.len() + 1;
        let (file, function) = (self.file.to_string(), format!("{}{}", self.of, self.function));
        let mutant = Mutant { number, file, function, operator, text, to: to.to_string() };
        if self.without.contains(mutant.key().as_str()) {
            return None;
        }
        self.found.mutants.push(mutant);
        Some(number)
    }

    /// What is chosen between: the first that is switched on, or the text itself.
    fn choice(
        &mut self,
        operator: &'static str,
        at: &Range<usize>,
        others: &[(&str, String)],
    ) -> (String, Vec<usize>) {
        let (mut text, mut numbers) = (String::new(), Vec::new());
        for (to, other) in others {
            if let Some(number) = self.note(operator, at, to) {
                text.push_str(&format!("if crate::mutant::on({number}) {{ {other} }} else "));
                numbers.push(number);
            }
        }
        (text, numbers)
    }

    fn turned(&mut self, operator: &'static str, at: Range<usize>) {
        if let Some(number) = self.note(operator, &at, "the opposite") {
            self.found.edits.around(&at, format!("(crate::mutant::on({number}) != ("), "))", vec![number]);
        }
    }

    /// An operator of two values, which are computed once.
    fn operator(
        &mut self,
        binary: &syn::ExprBinary,
        operator: &'static str,
        others: &[&str],
        by: (&str, &str),
    ) {
        let (at, sign) = (binary.span().byte_range(), binary.op.span().byte_range());
        let now = self.source.get(sign.clone()).unwrap_or_default();
        let (borrowed, read) = by;
        let others: Vec<(&str, String)> =
            others.iter().map(|other| (*other, format!("{read}__l {other} {read}__r"))).collect();
        let (choice, numbers) = self.choice(operator, &at, &others);
        if numbers.is_empty() {
            return;
        }
        let after = format!(")) {{ (__l, __r) => {choice}{{ {read}__l {now} {read}__r }} }})");
        self.found.edits.around(&at, format!("(match ({borrowed}("), &after, numbers);
        self.found.edits.replace(sign, &format!("), {borrowed}("));
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let compared = ("&", "*");
        match binary.op {
            BinOp::Lt(_) => self.operator(binary, "comparison", &["<=", ">="], compared),
            BinOp::Le(_) => self.operator(binary, "comparison", &["<", ">"], compared),
            BinOp::Gt(_) => self.operator(binary, "comparison", &[">=", "<="], compared),
            BinOp::Ge(_) => self.operator(binary, "comparison", &[">", "<"], compared),
            BinOp::Eq(_) => self.operator(binary, "comparison", &["!="], compared),
            BinOp::Ne(_) => self.operator(binary, "comparison", &["=="], compared),
            BinOp::Add(_) => self.operator(binary, "arithmetic", &["-"], ("", "")),
            BinOp::Sub(_) => self.operator(binary, "arithmetic", &["+"], ("", "")),
            BinOp::Mul(_) => self.operator(binary, "arithmetic", &["/"], ("", "")),
            BinOp::Div(_) => self.operator(binary, "arithmetic", &["*"], ("", "")),
            BinOp::Rem(_) => self.operator(binary, "arithmetic", &["/"], ("", "")),
            BinOp::And(_) | BinOp::Or(_) if !binds(&binary.left) && !binds(&binary.right) => {
                let is_and = matches!(binary.op, BinOp::And(_));
                let (at, sign) = (binary.span().byte_range(), binary.op.span().byte_range());
                let Some(number) = self.note("logic", &at, if is_and { "||" } else { "&&" }) else { return };
                let equal = if is_and { "!=" } else { "==" };
                let middle = format!(") {{ __l => if __l {equal} crate::mutant::on({number}) {{ (");
                self.found.edits.around(&at, "(match (".into(), ") } else { __l } })", vec![number]);
                self.found.edits.replace(sign, &middle);
            }
            _ => {}
        }
    }

    fn body(
        &mut self,
        attributes: &[Attribute],
        signature: &Signature,
        block: &Block,
        visit: impl FnOnce(&mut Self),
    ) {
        if is_test(attributes) || signature.constness.is_some() {
            return;
        }
        let outer = std::mem::replace(&mut self.function, signature.ident.to_string());
        // How something is shown is wording.
        if signature.ident != "fmt" && !block.stmts.is_empty() {
            self.default_of(signature, block);
        }
        visit(self);
        self.function = outer;
    }

    /// A function that does nothing, or always says the same.
    fn default_of(&mut self, signature: &Signature, block: &Block) {
        let values: &[&str] = match &signature.output {
            ReturnType::Default => &[""],
            ReturnType::Type(_, kind) => {
                let text = self.source.get(kind.span().byte_range()).unwrap_or_default();
                let text: String = text.split_whitespace().collect();
                match text.as_str() {
                    "bool" => &["true", "false"],
                    "usize" | "u8" | "u16" | "u32" | "u64" | "i32" | "i64" => &["0"],
                    "f64" => &["0.0"],
                    "String" => &["String::new()"],
                    "Result<()>" => &["Ok(())"],
                    "Result<bool>" => &["Ok(true)", "Ok(false)"],
                    "Result<usize>" | "Result<u64>" => &["Ok(0)"],
                    "Result<String>" => &["Ok(String::new())"],
                    text if text.starts_with("Option<") => &["None"],
                    text if text.starts_with("Vec<") => &["Vec::new()"],
                    text if text.starts_with("Result<Option<") => &["Ok(None)"],
                    text if text.starts_with("Result<Vec<") => &["Ok(Vec::new())"],
                    _ => &[],
                }
            }
        };
        let inside = block.brace_token.span.open().byte_range().end;
        let name = signature.ident.span().byte_range();
        let body =
            self.source.get(inside..block.brace_token.span.close().byte_range().start).unwrap_or_default();
        for value in values.iter().filter(|value| body.trim() != **value) {
            let to = format!("return {value}");
            if let Some(number) = self.note("default", &name, to.trim()) {
                let text = format!(" if crate::mutant::on({number}) {{ return {value}; }}");
                self.found.edits.behind(inside, text, vec![number]);
            }
        }
    }

    fn arm(&mut self, arm: &Arm, can_fall_through: bool) {
        let shown = arm.pat.span().byte_range();
        match &arm.guard {
            Some((_, guard)) => {
                let at = guard.span().byte_range();
                if let Some(number) = self.note("arm", &shown, "skipped") {
                    let before = format!("!crate::mutant::on({number}) && (");
                    self.found.edits.around(&at, before, ")", vec![number]);
                }
                if is_plain(guard) {
                    self.turned("condition", at);
                }
            }
            None if can_fall_through => {
                if let Some(number) = self.note("arm", &shown, "skipped") {
                    let text = format!(" if !crate::mutant::on({number})");
                    self.found.edits.behind(shown.end, text, vec![number]);
                }
            }
            None => {}
        }
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.body(&item.attrs, &item.sig, &item.block, |finder| finder.visit_block(&item.block));
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.body(&item.attrs, &item.sig, &item.block, |finder| finder.visit_block(&item.block));
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(&item.attrs, &item.sig, block, |finder| finder.visit_block(block));
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if is_test(&item.attrs) {
            return;
        }
        let name = self.source.get(item.self_ty.span().byte_range()).unwrap_or_default();
        let name = name.split('<').next().unwrap_or_default();
        let outer = std::mem::replace(&mut self.of, format!("{name}::"));
        visit::visit_item_impl(self, item);
        self.of = outer;
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    // What is computed by the compiler, and what is no expression.
    fn visit_item_const(&mut self, _: &'a syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'a syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'a syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'a syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'a syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'a syn::ExprConst) {}
    fn visit_type(&mut self, _: &'a syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'a syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'a Pat) {}
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_expr_repeat(&mut self, repeat: &'a syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        self.binary(binary);
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_lit(&mut self, literal: &'a syn::ExprLit) {
        if let Lit::Int(number) = &literal.lit
            && let Ok(value) = number.base10_parse::<u64>()
        {
            let (at, suffix) = (literal.span().byte_range(), number.suffix());
            let others = [Some(value + 1), value.checked_sub(1).filter(|less| *less > 0)];
            let others: Vec<String> =
                others.iter().flatten().map(|other| format!("{other}{suffix}")).collect();
            let others: Vec<(&str, String)> =
                others.iter().map(|other| (other.as_str(), other.clone())).collect();
            let (choice, numbers) = self.choice("number", &at, &others);
            if !numbers.is_empty() {
                self.found.edits.around(&at, format!("({choice}{{ "), " })", numbers);
            }
        }
    }

    fn visit_expr_if(&mut self, condition: &'a syn::ExprIf) {
        if is_plain(&condition.cond) {
            self.turned("condition", condition.cond.span().byte_range());
        }
        visit::visit_expr_if(self, condition);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let method = call.method.to_string();
        if YES_OR_NO.contains(&method.as_str()) {
            self.turned("condition", call.span().byte_range());
        }
        if let ("min" | "max", 1) = (method.as_str(), call.args.len()) {
            let other = if method == "min" { "max" } else { "min" };
            let at = call.span().byte_range();
            let others = [(other, format!("__l.{other}(__r)"))];
            let (choice, numbers) = self.choice("arithmetic", &at, &others);
            if !numbers.is_empty() {
                let after = format!(")) {{ (__l, __r) => {choice}{{ __l.{method}(__r) }} }})");
                // The bracket behind the argument goes with a trailing comma; what is between is the method.
                let receiver = call.receiver.span().byte_range();
                let argument = call.args.span().byte_range();
                self.found.edits.around(&(at.start..argument.end), "(match ((".into(), &after, numbers);
                self.found.edits.replace(receiver.end..argument.start, "), (");
                self.found.edits.replace(argument.end..at.end, "");
            }
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_match(&mut self, matched: &'a syn::ExprMatch) {
        let last = matched.arms.last();
        let takes_all = last.is_some_and(|arm| {
            let is_open = match &arm.pat {
                Pat::Wild(_) => true,
                Pat::Ident(name) => {
                    name.subpat.is_none() && name.ident.to_string().starts_with(char::is_lowercase)
                }
                _ => false,
            };
            is_open && arm.guard.is_none()
        });
        for (nth, arm) in matched.arms.iter().enumerate() {
            self.arm(arm, takes_all && nth + 1 < matched.arms.len());
        }
        visit::visit_expr_match(self, matched);
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::Expr(expression, Some(end)) = statement
            && let Some(method) = called(expression)
            && !UNSEEN.contains(&method.as_str())
        {
            let at = expression.span().byte_range().start..end.span().byte_range().end;
            if let Some(number) = self.note("statement", &at, "deleted") {
                let before = format!("if !crate::mutant::on({number}) {{ ");
                self.found.edits.around(&at, before, " }", vec![number]);
            }
        }
        visit::visit_stmt(self, statement);
    }
}
