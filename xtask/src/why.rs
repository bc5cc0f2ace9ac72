//! `cargo xtask size --why [TEXT]`: what leads to the bytes of `core`.
//!
//! Nodes are the functions and the data of the linked module, edges what they refer to (its sections `linking` and `reloc.*`).
//! What is reached from an export is in `core`; what only a stage's entry reaches is in that stage. A node takes along what
//! is reached by way of it alone: so much a seam there would take out of `core`, at most.

use crate::Result;
use rustc_demangle::demangle;
use std::collections::{BTreeMap, HashMap, VecDeque};
use wasmparser::{
    DefinedDataSymbol, ExternalKind, KnownCustom, Linking, Name, Parser, Payload, RelocationEntry,
    SymbolInfo, TypeRef,
};

/// What a function or a piece of data is.
#[derive(Default)]
struct Part {
    name: String,
    bytes: usize,
    is_data: bool,
    refers_to: Vec<usize>,
}

/// A linked module as a graph.
#[derive(Default)]
struct Graph {
    parts: Vec<Part>,
    /// What is called from outside.
    exports: Vec<usize>,
    /// The entries of the stages.
    entries: BTreeMap<String, Vec<usize>>,
}

/// Lines of this many bytes or more are shown.
const LEAST: usize = 2_500;

/// What `core` is made of; with `text`, how the functions whose names hold it are reached.
pub(crate) fn why(wasm: &[u8], text: Option<&str>) -> Result<()> {
    let graph = Graph::read(wasm)?;
    let core = Reached::from(&graph, &graph.exports);
    if let Some(text) = text {
        for part in core.order.iter().filter(|part| graph.parts[**part].name.contains(text)) {
            println!("{}", core.way(&graph, *part).join("\n  <- "));
        }
        return Ok(());
    }
    println!("core: {}", graph.sum(&core.order));
    for (stage, entries) in &graph.entries {
        let mut own = Reached::from(&graph, entries).order;
        own.retain(|part| core.before[*part].is_none());
        println!("{stage}: {}", graph.sum(&own));
    }
    println!("\nBy module, with the way to its largest part:");
    let mut modules: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for part in core.order.iter().copied() {
        let (bytes, largest) = modules.entry(graph.parts[part].module()).or_insert((0, part));
        *bytes += graph.parts[part].bytes;
        if graph.parts[*largest].bytes < graph.parts[part].bytes {
            *largest = part;
        }
    }
    let mut modules: Vec<_> = modules.into_iter().filter(|(_, (bytes, _))| *bytes >= LEAST).collect();
    modules.sort_by_key(|(_, (bytes, _))| std::cmp::Reverse(*bytes));
    for (module, (bytes, largest)) in modules {
        println!("{bytes:>8} {module}\n           {}", core.way(&graph, largest).join(" <- "));
    }
    println!("\nWhat a seam would take out of `core`, at most (in brackets the bytes of the part itself):");
    core.taken(&graph).print(&graph);
    Ok(())
}

impl Part {
    /// The crate and the module that a function is of.
    fn module(&self) -> &str {
        if self.is_data {
            return "data";
        }
        let name = self.name.trim_start_matches(['<', '&']);
        let name = name.strip_prefix("dyn ").unwrap_or(name);
        let end = name.match_indices("::").nth(1).map_or(name.len(), |(at, _)| at);
        name.get(..end).unwrap_or(name)
    }
}

impl Graph {
    fn read(wasm: &[u8]) -> Result<Graph> {
        let mut graph = Graph::default();
        let (mut symbols, mut relocations) = (Vec::new(), Vec::new());
        // Where the bytes of each part are.
        let (mut places, mut segments) = (Vec::new(), Vec::new());
        let (mut code, mut data, mut section) = ((0, 0), (0, 0), 0);
        let mut exports = Vec::new();
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload?;
            let is_section = payload.as_section().is_some();
            match payload {
                Payload::ImportSection(reader) => {
                    for import in reader.into_imports() {
                        let import = import?;
                        if let TypeRef::Func(_) = import.ty {
                            graph.parts.push(Part { name: import.name.into(), ..Part::default() });
                        }
                    }
                }
                Payload::ExportSection(reader) => {
                    exports = reader.into_iter().collect::<std::result::Result<_, _>>()?
                }
                Payload::CodeSectionStart { range, .. } => code = (section, range.start),
                Payload::CodeSectionEntry(body) => {
                    let range = body.range();
                    places.push((range.start, range.end, graph.parts.len()));
                    let bytes = usize::try_from(range.end - range.start)?;
                    graph.parts.push(Part { bytes, ..Part::default() });
                }
                Payload::DataSection(reader) => {
                    data = (section, reader.range().start);
                    for segment in reader {
                        let segment = segment?;
                        segments.push(segment.range.end - segment.data.len() as u64);
                    }
                }
                Payload::CustomSection(custom) => match custom.as_known() {
                    KnownCustom::Linking(reader) => {
                        for found in reader.subsections() {
                            if let Linking::SymbolTable(table) = found? {
                                symbols = table.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
                            }
                        }
                    }
                    KnownCustom::Reloc(reader) => {
                        let entries =
                            reader.entries().into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
                        relocations.push((reader.section_index(), entries));
                    }
                    KnownCustom::Name(reader) => {
                        for names in reader {
                            if let Name::Function(names) = names? {
                                for naming in names {
                                    let naming = naming?;
                                    graph.parts[naming.index as usize].name =
                                        format!("{:#}", demangle(naming.name));
                                }
                            }
                        }
                    }
                    _ => {}
                },
                _ => {}
            }
            section += u32::from(is_section);
        }
        let mut pieces: HashMap<(u32, u32), usize> = HashMap::new();
        for symbol in &symbols {
            let SymbolInfo::Data { name, symbol: Some(DefinedDataSymbol { index, offset, size }), .. } =
                symbol
            else {
                continue;
            };
            pieces.entry((*index, *offset)).or_insert_with(|| {
                let start = segments[*index as usize] + u64::from(*offset);
                places.push((start, start + u64::from(*size), graph.parts.len()));
                let name = format!("data {:#}", demangle(name));
                graph.parts.push(Part { name, bytes: *size as usize, is_data: true, ..Part::default() });
                graph.parts.len() - 1
            });
        }
        places.sort_unstable();
        let target = |entry: &RelocationEntry| match symbols.get(entry.index as usize)? {
            SymbolInfo::Func { index, .. } => Some(*index as usize),
            SymbolInfo::Data { symbol: Some(of), .. } => pieces.get(&(of.index, of.offset)).copied(),
            _ => None,
        };
        for (of, entries) in &relocations {
            let Some((_, start)) = [code, data].into_iter().find(|(section, _)| section == of) else {
                continue;
            };
            for entry in entries.iter().filter(|entry| entry.ty != wasmparser::RelocationType::TypeIndexLeb) {
                let at = start + u64::from(entry.offset);
                let before = places.partition_point(|(from, ..)| *from <= at);
                let place =
                    before.checked_sub(1).and_then(|nth| places.get(nth)).filter(|(_, end, _)| at < *end);
                if let (Some((_, _, from)), Some(to)) = (place, target(entry)) {
                    graph.parts[*from].refers_to.push(to);
                }
            }
        }
        for export in exports.iter().filter(|export| export.kind == ExternalKind::Func) {
            let part = export.index as usize;
            match export.name.strip_prefix("__wasm_split_00").and_then(|name| name.split_once("00_export_")) {
                Some((stage, _)) => graph.entries.entry(stage.into()).or_default().push(part),
                // What the glue is made of, and is in no file.
                None if export.name.starts_with("__wbindgen_describe") => {}
                None => graph.exports.push(part),
            }
        }
        Ok(graph)
    }

    fn sum(&self, parts: &[usize]) -> String {
        let (data, code): (Vec<&Part>, Vec<&Part>) =
            parts.iter().map(|part| &self.parts[*part]).partition(|part| part.is_data);
        let bytes = |parts: &[&Part]| parts.iter().map(|part| part.bytes).sum::<usize>();
        format!("{} bytes of code in {} functions, {} of data", bytes(&code), code.len(), bytes(&data))
    }
}

/// What is reached, the nearest first.
struct Reached {
    order: Vec<usize>,
    /// By what each part was reached first; itself for a root.
    before: Vec<Option<usize>>,
}

impl Reached {
    fn from(graph: &Graph, roots: &[usize]) -> Reached {
        let mut reached = Reached { order: Vec::new(), before: vec![None; graph.parts.len()] };
        let mut waiting: VecDeque<(usize, usize)> = roots.iter().map(|root| (*root, *root)).collect();
        while let Some((by, part)) = waiting.pop_front() {
            if reached.before[part].is_none() && !graph.parts[part].name.contains("__wbindgen_describe") {
                reached.before[part] = Some(by);
                reached.order.push(part);
                waiting.extend(graph.parts[part].refers_to.iter().map(|to| (part, *to)));
            }
        }
        reached
    }

    /// The shortest way to a part, from its end.
    fn way(&self, graph: &Graph, mut part: usize) -> Vec<String> {
        let mut way = Vec::new();
        loop {
            way.push(format!("{} ({})", graph.parts[part].name, graph.parts[part].bytes));
            match self.before[part] {
                Some(by) if by != part => part = by,
                _ => return way,
            }
        }
    }

    /// What each part takes along (dominators, after Cooper, Harvey and Kennedy).
    fn taken(&self, graph: &Graph) -> Taken {
        let root = graph.parts.len();
        let is_reached = |part: &usize| self.before[*part].is_some();
        let next = |part: usize| -> &[usize] {
            if part == root { &graph.exports } else { &graph.parts[part].refers_to }
        };
        let (mut order, mut seen, mut stack) = (Vec::new(), vec![false; root + 1], vec![(root, 0)]);
        while let Some((part, nth)) = stack.pop() {
            match next(part).get(nth) {
                Some(to) => {
                    stack.push((part, nth + 1));
                    if is_reached(to) && !std::mem::replace(&mut seen[*to], true) {
                        stack.push((*to, 0));
                    }
                }
                None => order.push(part),
            }
        }
        order.reverse();
        let mut rank = vec![usize::MAX; root + 1];
        order.iter().enumerate().for_each(|(nth, part)| rank[*part] = nth);
        let mut from = vec![Vec::new(); root + 1];
        for part in &order {
            next(*part).iter().filter(|to| is_reached(to)).for_each(|to| from[*to].push(*part));
        }
        let mut above = vec![None; root + 1];
        above[root] = Some(root);
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for part in order.iter().skip(1) {
                let mut found: Option<usize> = None;
                for by in from[*part].iter().copied().filter(|by| above[*by].is_some()) {
                    let (mut one, mut other) = (by, found.unwrap_or(by));
                    while one != other {
                        let lower = if rank[one] > rank[other] { &mut one } else { &mut other };
                        *lower = above[*lower].unwrap_or(root);
                    }
                    found = Some(one);
                }
                is_changed |= above[*part] != found;
                above[*part] = found;
            }
        }
        let mut taken = Taken { bytes: vec![0; root + 1], below: vec![Vec::new(); root + 1] };
        for part in order.iter().skip(1).rev().copied() {
            let by = above[part].unwrap_or(root);
            taken.bytes[part] += graph.parts[part].bytes;
            taken.bytes[by] += taken.bytes[part];
            taken.below[by].push(part);
        }
        taken
    }
}

/// What parts take along.
struct Taken {
    bytes: Vec<usize>,
    /// The parts that are reached by way of each.
    below: Vec<Vec<usize>>,
}

impl Taken {
    fn print(&self, graph: &Graph) {
        let mut waiting = vec![(0, graph.parts.len())];
        while let Some((depth, part)) = waiting.pop() {
            if let Some(Part { name, bytes, .. }) = graph.parts.get(part) {
                println!("{:depth$}{} ({bytes}) {name}", "", self.bytes[part]);
            }
            let mut below: Vec<usize> =
                self.below[part].iter().copied().filter(|part| self.bytes[*part] >= LEAST).collect();
            below.sort_by_key(|part| self.bytes[*part]);
            waiting.extend(below.into_iter().map(|part| (depth + 2, part)));
        }
    }
}
