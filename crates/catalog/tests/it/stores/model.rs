//! Naive model of one catalog: a list of nodes, searched from its beginning for every question.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub struct ModelNode {
    pub parent: usize,
    pub given: String,
    /// Number of the call that named it: earlier ones keep equal names.
    pub named: usize,
    pub is_collection: bool,
    pub trashed: bool,
    pub contents: Vec<u8>,
    pub attributes: BTreeSet<(String, i64)>,
}

/// Tree of nodes; node 0 is the root.
#[derive(Clone, Debug)]
pub struct Model {
    pub nodes: Vec<ModelNode>,
    calls: usize,
}

/// Refusal of a call, without a reason.
pub type Outcome<T> = Option<T>;

fn split(path: &str) -> Outcome<(&str, &str)> {
    path.rsplit_once('/').filter(|(_, name)| !name.is_empty())
}

impl Model {
    pub fn new() -> Self {
        let root = ModelNode {
            parent: 0,
            given: String::new(),
            named: 0,
            is_collection: true,
            trashed: false,
            contents: vec![],
            attributes: BTreeSet::new(),
        };
        Self { nodes: vec![root], calls: 0 }
    }

    /// Shown names of the visible children of a node.
    pub fn children(&self, parent: usize) -> BTreeMap<String, usize> {
        let is_child = |at: &usize| *at > 0 && self.nodes[*at].parent == parent && !self.nodes[*at].trashed;
        let mut ids: Vec<usize> = (0..self.nodes.len()).filter(is_child).collect();
        ids.sort_by_key(|at| self.nodes[*at].named);
        let given: BTreeSet<&String> = ids.iter().map(|at| &self.nodes[*at].given).collect();
        let mut shown = BTreeMap::new();
        for at in &ids {
            let name = self.nodes[*at].given.clone();
            let numbered = (1..).map(|number| format!("{name}_{number}"));
            let free = |shown: &BTreeMap<String, usize>, name: &String| !shown.contains_key(name);
            let name = if free(&shown, &name) {
                name
            } else {
                numbered.into_iter().find(|name| free(&shown, name) && !given.contains(name)).unwrap()
            };
            shown.insert(name, *at);
        }
        shown
    }

    pub fn resolve(&self, path: &str) -> Outcome<usize> {
        let names = path.split('/').skip(1).filter(|name| !name.is_empty());
        names.into_iter().try_fold(0, |at, name| self.children(at).get(name).copied())
    }

    fn collection(&self, path: &str) -> Outcome<usize> {
        self.resolve(path).filter(|at| self.nodes[*at].is_collection)
    }

    fn make(&mut self, parent: usize, name: &str, is_collection: bool) -> usize {
        let (given, named, contents, attributes) = (name.to_owned(), self.call(), vec![], BTreeSet::new());
        self.nodes.push(ModelNode {
            parent,
            given,
            named,
            is_collection,
            trashed: false,
            contents,
            attributes,
        });
        self.nodes.len() - 1
    }

    fn call(&mut self) -> usize {
        self.calls += 1;
        self.calls
    }

    pub fn make_collection(&mut self, path: &str, parents: bool) -> Outcome<usize> {
        if let Some(at) = self.resolve(path) {
            return (parents && self.nodes[at].is_collection).then_some(at);
        }
        let (above, name) = split(path)?;
        let parent = match self.resolve(above) {
            Some(at) => self.nodes[at].is_collection.then_some(at)?,
            None if parents => self.make_collection(above, true)?,
            None => return None,
        };
        Some(self.make(parent, name, true))
    }

    pub fn put(&mut self, path: &str, content: u8) -> Outcome<()> {
        let (above, name) = split(path)?;
        let parent = self.collection(above)?;
        let at = match self.resolve(path) {
            Some(at) if self.nodes[at].is_collection => return None,
            Some(at) => at,
            None => self.make(parent, name, false),
        };
        self.nodes[at].contents.push(content);
        Some(())
    }

    pub fn rename(&mut self, from: &str, to: &str) -> Outcome<()> {
        let at = self.resolve(from).filter(|at| *at > 0)?;
        let (above, name) = split(to)?;
        if to.starts_with(&format!("{from}/")) {
            return None;
        }
        let parent = self.collection(above)?;
        if self.resolve(to).is_some_and(|found| found != at) {
            return None;
        }
        if self.resolve(to) != Some(at) || self.nodes[at].given != name {
            let named = self.call();
            let node = &mut self.nodes[at];
            (node.parent, node.given, node.named) = (parent, name.to_owned(), named);
        }
        Some(())
    }

    pub fn trash(&mut self, path: &str) -> Outcome<()> {
        let at = self.resolve(path).filter(|at| *at > 0)?;
        self.nodes[at].trashed = true;
        Some(())
    }

    /// Nodes in the trash, each by itself.
    pub fn trashed(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|at| self.nodes[*at].trashed).collect()
    }

    pub fn restore(&mut self, at: usize) -> Outcome<()> {
        let mut above = self.nodes[at].parent;
        while above > 0 {
            if self.nodes[above].trashed {
                return None;
            }
            above = self.nodes[above].parent;
        }
        if self.children(self.nodes[at].parent).contains_key(&self.nodes[at].given) {
            self.nodes[at].named = self.call();
        }
        self.nodes[at].trashed = false;
        Some(())
    }

    pub fn add_attribute(&mut self, path: &str, name: &str, value: i64) -> Outcome<()> {
        let at = self.resolve(path).filter(|at| *at > 0)?;
        self.nodes[at].attributes.insert((name.to_owned(), value));
        Some(())
    }

    pub fn remove_attribute(&mut self, path: &str, name: &str) -> Outcome<()> {
        let at = self.resolve(path).filter(|at| *at > 0)?;
        self.nodes[at].attributes.retain(|(held, _)| held != name);
        Some(())
    }

    /// All visible paths with their nodes.
    pub fn paths(&self) -> BTreeMap<String, usize> {
        let (mut all, mut open) = (BTreeMap::new(), vec![(String::new(), 0)]);
        while let Some((above, parent)) = open.pop() {
            for (name, at) in self.children(parent) {
                let path = format!("{above}/{name}");
                all.insert(path.clone(), at);
                open.push((path, at));
            }
        }
        all
    }
}
