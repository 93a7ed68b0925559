//! The files and directories of a crash disk: for each what is seen, and what is durable.
//!
//! A file has two contents, a directory two sets of names and the list of changes that lead
//! from the durable one to the one that is seen. Invariants: the changes of `pending`, applied
//! in order to `durable`, give `current`, unless a sync failed (then some are forgotten: seen,
//! never durable); a name in either set refers to a node that is there. Nodes that lost their
//! last name stay until the next crash, as files do that are still open.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

/// The number of a file or directory.
pub(super) type NodeId = u64;

/// The directory that everything lies in.
pub(super) const ROOT: NodeId = 0;

/// One file.
#[derive(Debug, Clone)]
pub(super) struct FileNode {
    pub(super) durable: Arc<[u8]>,
    pub(super) current: Arc<[u8]>,
    /// Would a sync write `current`? Not after a failed one: its pages pass for clean.
    pub(super) dirty: bool,
    /// The disk's clock when `current` was written.
    pub(super) written_at: Duration,
}

/// A name set to a node, or removed.
#[derive(Debug, Clone)]
pub(super) struct NameChange {
    pub(super) name: String,
    pub(super) target: Option<NodeId>,
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, NodeId>) {
        match self.target {
            Some(node) => names.insert(self.name.clone(), node),
            None => names.remove(&self.name),
        };
    }
}

/// One directory.
#[derive(Debug, Clone, Default)]
pub(super) struct DirectoryNode {
    pub(super) durable: BTreeMap<String, NodeId>,
    pub(super) current: BTreeMap<String, NodeId>,
    pub(super) pending: Vec<NameChange>,
}

impl DirectoryNode {
    fn change(&mut self, name: &str, target: Option<NodeId>) {
        let change = NameChange {
            name: name.to_owned(),
            target,
        };
        change.apply(&mut self.current);
        self.pending.push(change);
    }
}

/// A file or a directory.
#[derive(Debug, Clone)]
pub(super) enum Node {
    File(FileNode),
    Directory(DirectoryNode),
}

/// All of them. Contents are shared between copies of a tree: copying is cheap.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<NodeId, Node>,
    next: NodeId,
}

impl Tree {
    /// An empty root.
    pub(super) fn new() -> Self {
        let root = Node::Directory(DirectoryNode::default());
        Self {
            nodes: BTreeMap::from([(ROOT, root)]),
            next: ROOT + 1,
        }
    }

    /// The node of a path, as seen now.
    pub(super) fn find(&self, path: &str) -> io::Result<NodeId> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(ROOT, |node, part| {
            let names = &self.directory(node)?.current;
            names.get(part).copied().ok_or_else(|| Errno::NOENT.into())
        })
    }

    pub(super) fn directory(&self, node: NodeId) -> io::Result<&DirectoryNode> {
        match &self.nodes[&node] {
            Node::Directory(directory) => Ok(directory),
            Node::File(_) => Err(Errno::NOTDIR.into()),
        }
    }

    pub(super) fn directory_mut(&mut self, node: NodeId) -> io::Result<&mut DirectoryNode> {
        match self.nodes.get_mut(&node) {
            Some(Node::Directory(directory)) => Ok(directory),
            _ => Err(Errno::NOTDIR.into()),
        }
    }

    pub(super) fn file(&self, node: NodeId) -> io::Result<&FileNode> {
        match &self.nodes[&node] {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(Errno::ISDIR.into()),
        }
    }

    pub(super) fn file_mut(&mut self, node: NodeId) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(&node) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(Errno::ISDIR.into()),
        }
    }

    /// Makes a directory; seen, not durable.
    pub(super) fn create_dir(&mut self, path: &str) -> io::Result<()> {
        let node = Node::Directory(DirectoryNode::default());
        self.create(path, node).map(|_| ())
    }

    /// Makes a file with `bytes` in it; seen, not durable.
    pub(super) fn write_new_file(
        &mut self,
        path: &str,
        bytes: &[u8],
        written_at: Duration,
    ) -> io::Result<NodeId> {
        let file = FileNode {
            durable: Arc::from([]),
            current: Arc::from(bytes),
            dirty: true,
            written_at,
        };
        self.create(path, Node::File(file))
    }

    /// Writes `bytes` behind what a file holds; seen, not durable.
    pub(super) fn append(
        &mut self,
        node: NodeId,
        bytes: &[u8],
        written_at: Duration,
    ) -> io::Result<()> {
        let file = self.file_mut(node)?;
        file.current = [&file.current, bytes].concat().into();
        file.dirty = true;
        file.written_at = written_at;
        Ok(())
    }

    fn create(&mut self, path: &str, node: Node) -> io::Result<NodeId> {
        let (parent, name) = self.vacancy(path)?;
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, node);
        self.directory_mut(parent)?.change(name, Some(number));
        Ok(number)
    }

    /// Moves a file to a name that must be free: two changes, each durable on its own.
    pub(super) fn publish(&mut self, from: &str, to: &str) -> io::Result<()> {
        let node = self.find(from)?;
        self.file(node)?;
        let (parent, name) = self.vacancy(to)?;
        self.directory_mut(parent)?.change(name, Some(node));
        self.remove_file(from)
    }

    /// Moves a file to a name that another file may have: the name is one change, durable or not; the old one goes by another.
    pub(super) fn replace(&mut self, from: &str, to: &str) -> io::Result<()> {
        let node = self.find(from)?;
        self.file(node)?;
        let (directory, name) = split(to);
        let directory = self.find(directory)?;
        if let Some(&old) = self.directory(directory)?.current.get(name) {
            self.file(old)?;
        }
        self.directory_mut(directory)?.change(name, Some(node));
        self.remove_file(from)
    }

    /// Takes the name of a file away; seen, not durable.
    pub(super) fn remove_file(&mut self, path: &str) -> io::Result<()> {
        self.file(self.find(path)?)?;
        let (directory, name) = split(path);
        let directory = self.find(directory)?;
        self.directory_mut(directory)?.change(name, None);
        Ok(())
    }

    /// The directory and the name in it that a new node at `path` takes.
    fn vacancy<'a>(&self, path: &'a str) -> io::Result<(NodeId, &'a str)> {
        let (directory, name) = split(path);
        let directory = self.find(directory)?;
        if self.directory(directory)?.current.contains_key(name) {
            return Err(Errno::EXIST.into());
        }
        Ok((directory, name))
    }

    /// Paths of all files that are seen.
    pub(super) fn file_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let mut directories = vec![(String::new(), ROOT)];
        while let Some((above, number)) = directories.pop() {
            let Node::Directory(directory) = &self.nodes[&number] else {
                continue;
            };
            for (name, node) in &directory.current {
                let separator = if above.is_empty() { "" } else { "/" };
                let path = format!("{above}{separator}{name}");
                match self.nodes[node] {
                    Node::File(_) => paths.push(path),
                    Node::Directory(_) => directories.push((path, *node)),
                }
            }
        }
        paths.sort();
        paths
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
