//! Walk through one JSON document: records the requested values and validates the rest. Values are not interpreted
//! here.

use super::convert::is_key;
use super::{JsonSpan, Node};
use crate::{MAX_DATA, MAX_STEPS, Step};
use hifijson::token::Lex as _;
use hifijson::{Read as _, SliceLexer, num, str};
use num::LexWrite as _;
use str::LexWrite as _;

/// Of each array or object around a place whether it is an object: a bit each, for as many as there can be.
#[derive(Clone, Debug)]
pub(super) struct Nesting(Box<[u64]>);

impl Default for Nesting {
    fn default() -> Self {
        Self(vec![0; MAX_DATA / 64].into_boxed_slice())
    }
}

impl Nesting {
    fn set(&mut self, depth: usize, object: bool) {
        if let Some(word) = self.0.get_mut(depth / 64) {
            *word = *word & !(1 << (depth % 64)) | u64::from(object) << (depth % 64);
        }
    }

    fn is_object(&self, depth: usize) -> bool {
        self.0.get(depth / 64).is_some_and(|word| word >> (depth % 64) & 1 == 1)
    }
}

/// A document that is being read. `None` says that it ends or is none.
pub(super) struct Walk<'a, 'p> {
    data: &'a [u8],
    /// Whether the document goes on behind `data`.
    cut: bool,
    lexer: SliceLexer<'a>,
    nodes: &'p mut [Node],
    nesting: &'p mut Nesting,
}

impl<'a, 'p> Walk<'a, 'p> {
    pub(super) fn new(data: &'a [u8], cut: bool, nodes: &'p mut [Node], nesting: &'p mut Nesting) -> Self {
        Self { data, cut, lexer: SliceLexer::new(data), nodes, nesting }
    }

    /// Reads all of it; whether it is one document and no more.
    pub(super) fn document(mut self) -> bool {
        let read = self.lexer.ws_peek().and_then(|next| self.value(0, next));
        read.is_some() && self.lexer.ws_peek().is_none()
    }

    /// Reads all of it, an object, and gives every scalar in objects within objects to `visit`, with the keys that lead
    /// there as they are written. Whether it is one document and no more.
    pub(super) fn fields(mut self, visit: &mut dyn FnMut(&[&'a [u8]], JsonSpan)) -> bool {
        let mut keys = Vec::with_capacity(MAX_STEPS);
        let read = self
            .lexer
            .ws_peek()
            .filter(|next| *next == b'{')
            .and_then(|next| self.field(next, &mut keys, visit));
        read.is_some() && self.lexer.ws_peek().is_none()
    }

    /// Reads the value of a field. It calls itself no deeper than paths have steps.
    fn field(
        &mut self,
        next: u8,
        keys: &mut Vec<&'a [u8]>,
        visit: &mut dyn FnMut(&[&'a [u8]], JsonSpan),
    ) -> Option<()> {
        if next != b'{' || keys.len() == MAX_STEPS {
            if matches!(next, b'{' | b'[') {
                return self.skip(next);
            }
            let found = self.scalar(next)?;
            visit(keys, found);
            return Some(());
        }
        self.lexer.take_next();
        let mut next = self.lexer.ws_peek()?;
        if next == b'}' {
            self.lexer.take_next();
            return Some(());
        }
        loop {
            keys.push(self.key(next)?);
            next = self.lexer.ws_peek()?;
            self.field(next, keys, visit)?;
            keys.pop();
            match self.lexer.ws_peek()? {
                b',' => {}
                b'}' => {
                    self.lexer.take_next();
                    return Some(());
                }
                _ => return None,
            }
            self.lexer.take_next();
            next = self.lexer.ws_peek()?;
        }
    }

    fn at(&self) -> usize {
        self.data.len() - self.lexer.as_slice().len()
    }

    /// Reads a value that begins with `next` and stands at `node`. It calls itself no deeper than paths have steps.
    fn value(&mut self, node: usize, next: u8) -> Option<()> {
        let found = match next {
            b'{' | b'[' => {
                let from = self.at();
                match next {
                    _ if self.nodes.get(node)?.child.is_none() => self.skip(next)?,
                    b'{' => self.object(node)?,
                    _ => self.array(node)?,
                }
                JsonSpan::Container(from, self.at())
            }
            _ => self.scalar(next)?,
        };
        let node = self.nodes.get_mut(node)?;
        (node.met, node.found) = (true, found);
        Some(())
    }

    /// Reads a value that is neither an object nor an array.
    fn scalar(&mut self, next: u8) -> Option<JsonSpan> {
        Some(match next {
            b'"' => {
                let text = self.string()?;
                let to = self.at() - 1;
                JsonSpan::Text(to - text.len(), to)
            }
            b'-' | b'0'..=b'9' => {
                let from = self.at();
                self.number()?;
                JsonSpan::Number(from, self.at())
            }
            _ => self.lexer.null_or_bool()?.map_or(JsonSpan::Nothing, JsonSpan::Bool),
        })
    }

    /// Reads a string; what is between its quotes. Most have no escape, and are done with in one look.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.lexer.take_next();
        let rest = self.lexer.as_slice();
        let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        let (mut text, behind) = rest.split_at_checked(plain)?;
        if let [b'"', behind @ ..] = behind {
            self.lexer = SliceLexer::new(behind);
        } else {
            self.lexer.str_bytes(&mut text).ok()?;
        }
        Some(text)
    }

    /// Of a number at the end of a document that is cut nobody knows whether it is whole.
    fn number(&mut self) -> Option<()> {
        self.lexer.num_bytes().validated().ok()?;
        (!self.cut || !self.lexer.as_slice().is_empty()).then_some(())
    }

    fn object(&mut self, node: usize) -> Option<()> {
        self.lexer.take_next();
        let mut next = self.lexer.ws_peek()?;
        if next == b'}' {
            self.lexer.take_next();
            return Some(());
        }
        loop {
            let key = self.key(next)?;
            next = self.lexer.ws_peek()?;
            self.member(node, next, |step| matches!(step, Step::Key(name) if is_key(key, name)))?;
            match self.lexer.ws_peek()? {
                b',' => {}
                b'}' => {
                    self.lexer.take_next();
                    return Some(());
                }
                _ => return None,
            }
            self.lexer.take_next();
            next = self.lexer.ws_peek()?;
        }
    }

    fn array(&mut self, node: usize) -> Option<()> {
        self.lexer.take_next();
        let mut next = self.lexer.ws_peek()?;
        if next == b']' {
            self.lexer.take_next();
            return Some(());
        }
        for index in 0usize.. {
            self.member(
                node,
                next,
                |step| matches!(step, Step::Index(place) if usize::from(*place) == index),
            )?;
            match self.lexer.ws_peek()? {
                b',' => {}
                b']' => break,
                _ => return None,
            }
            self.lexer.take_next();
            next = self.lexer.ws_peek()?;
        }
        self.lexer.take_next();
        Some(())
    }

    /// Reads the value behind the step of a path, or one that no path leads to.
    fn member(&mut self, parent: usize, next: u8, is_it: impl Fn(&Step) -> bool) -> Option<()> {
        let mut at = self.nodes[parent].child;
        while let Some(number) = at {
            let node = self.nodes.get(number)?;
            if node.step.as_ref().is_some_and(&is_it) {
                return if node.met { self.skip(next) } else { self.value(number, next) };
            }
            at = node.sibling;
        }
        self.skip(next)
    }

    /// Reads a key, which begins with `next`, and its colon.
    fn key(&mut self, next: u8) -> Option<&'a [u8]> {
        if next != b'"' {
            return None;
        }
        let key = self.string()?;
        self.lexer.expect(SliceLexer::ws_peek, b':')?;
        Some(key)
    }

    /// Reads a value, however deep, that nothing is asked of.
    fn skip(&mut self, mut next: u8) -> Option<()> {
        let mut depth = 0;
        loop {
            match next {
                b'{' | b'[' => {
                    let object = next == b'{';
                    self.lexer.take_next();
                    let first = self.lexer.ws_peek()?;
                    if first == if object { b'}' } else { b']' } {
                        self.lexer.take_next();
                    } else {
                        self.nesting.set(depth, object);
                        depth += 1;
                        next = self.inner(object, first)?;
                        continue;
                    }
                }
                b'"' => _ = self.string()?,
                b'-' | b'0'..=b'9' => self.number()?,
                _ => {
                    self.lexer.null_or_bool()?;
                }
            }
            // A value has ended, and with it perhaps what is around it.
            loop {
                if depth == 0 {
                    return Some(());
                }
                let object = self.nesting.is_object(depth - 1);
                match self.lexer.ws_peek()? {
                    b',' => {
                        self.lexer.take_next();
                        let first = self.lexer.ws_peek()?;
                        next = self.inner(object, first)?;
                        break;
                    }
                    b'}' if object => depth -= 1,
                    b']' if !object => depth -= 1,
                    _ => return None,
                }
                self.lexer.take_next();
            }
        }
    }

    /// What the next value in an array or object begins with, behind its key if it has one.
    fn inner(&mut self, object: bool, first: u8) -> Option<u8> {
        if object {
            self.key(first)?;
            return self.lexer.ws_peek();
        }
        Some(first)
    }
}
