//! Names that occur in everybody's projects and therefore say nothing about one of them.
//!
//! The list is frozen. It is every name that the scanner of entities finds in at least one in 25 of 410 packages that have
//! nothing to do with each other: those that `Cargo.lock` and `package-lock.json` pin, the first 150,000 bytes of their
//! sources and pages each, without what a family of crates of one author says of itself. The ignored test
//! `generic_names_of_packages` counts them again.

/// Sorted, because it is searched by halves; of a path the last two components.
pub(super) const GENERIC: &[&str] = &[
    "$/.test", "--cfg", "--check", "--extern-html-root-url", "--fix", "--generate-link-to-definition",
    "--generate-macro-expansion", "--save", "--verbose", "--version", "--watch", "--write", "../README.md",
    ".d.ts", "/.test", "@types/node", "AbortSignal", "Arc::new", "Array.isArray", "ArrayBuffer", "AsRef",
    "AtomicUsize", "AtomicUsize::new", "BTreeMap", "BigInt", "Box::new", "CHANGELOG.md", "Cargo.toml",
    "Cell::new", "CommonJS", "Default::default", "ErrorKind", "EventEmitter", "FnMut", "FnOnce",
    "FromIterator", "HashMap", "HashSet", "IntoIter", "IntoIterator", "MaybeUninit", "Node.js",
    "Number.isInteger", "Number.isNaN", "Object.defineProperty", "Object.getOwnPropertyDescriptor",
    "Object.getOwnPropertyNames", "Object.prototype.hasOwnProperty", "Object.prototype.hasOwnProperty.call",
    "Ordering::Relaxed", "PartialEq", "PartialOrd", "PathBuf", "PhantomData", "README.md", "RangeError",
    "ReadableStream", "RefCell", "RegExp", "ReturnType", "S::Error", "S::Ok", "Self::Error", "Self::Item",
    "Self::Output", "Self::default", "Self::new", "String.fromCharCode", "String::from_utf8", "String::new",
    "Symbol.toStringTag", "TypeError", "Vec::new", "Vec::with_capacity", "WebAssembly", "WebSocket",
    "__createBinding", "__defProp", "__esModule", "__importStar", "__setModuleDefault", "alloc::boxed::Box",
    "alloc::string::String", "alloc::vec::Vec", "as_str", "assert_eq", "bin/env", "build.rs", "byteLength",
    "cfg_attr", "checked_conversions", "clearTimeout", "cmp::min", "compile_error", "console.log",
    "core::cmp", "core::error::Error", "core::fmt", "core::fmt::Debug", "core::fmt::Formatter",
    "core::fmt::Result", "core::marker::PhantomData", "core::mem", "core::mem::size_of", "core::ops",
    "core::sync::atomic", "dead_code", "debug_assert", "debug_assert_eq", "decodeURIComponent",
    "devDependencies", "dist/index.d.ts", "dist/index.js", "doc_cfg", "docs.rs", "f.debug_struct",
    "f.write_str", "fmt::Debug", "fmt::Display", "fmt::Error", "fmt::Formatter", "fmt::Result", "format_args",
    "formatter.write_str", "from_str", "get_mut", "globalThis", "html_root_url",
    "http://opensource.org/licenses/MIT", "http://www.apache.org/licenses/LICENSE-2.0",
    "https://doc.rust-lang.org", "https://keepachangelog.com/en/1.0.0/",
    "https://semver.org/spec/v2.0.0.html", "https://www.apache.org/licenses/LICENSE-2.0", "include_str",
    "index.d.ts", "index.js", "into_iter", "io::Error", "io::Result", "isNaN", "is_empty",
    "lints.rust.unexpected_cfgs", "m.__esModule", "macro_export", "macro_rules", "macro_use", "mem::size_of",
    "missing_debug_implementations", "missing_docs", "mod.__esModule", "must_use", "no_std", "node.js",
    "node_modules", "non_snake_case", "package.json", "package.metadata.docs.rs", "parseInt", "path_in_vcs",
    "prepublishOnly", "process.env", "ptr_as_ptr", "publishConfig", "rust_2018_idioms", "rustfmt::skip",
    "semicolon_if_nothing_returned", "setTimeout", "should_panic", "sideEffects", "size_hint", "size_of",
    "sourceMappingURL", "src/index.ts", "src/lib.rs", "statusCode", "std::collections::HashMap", "std::env",
    "std::error::Error", "std::fmt", "std::fs", "std::fs::File", "std::io", "std::io::Write",
    "std::path::Path", "std::str", "std::sync::Arc", "str::from_utf8", "target_arch", "target_feature",
    "target_os", "target_pointer_width", "test.js", "test::Bencher", "this.__createBinding",
    "this.__importStar", "this.__setModuleDefault", "toJSON", "toString", "track_caller", "u32::MAX",
    "u64::from", "uninlined_format_args", "unreachable_pub", "unsafe_code", "unsafe_op_in_unsafe_fn",
    "unused_imports", "unused_lifetimes", "unused_qualifications", "usize::MAX",
];
