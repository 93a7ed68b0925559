//! What the store holds, and how far everybody is.

/// Slots: bits of a mask. The first two are of one logical container, the others of one each.
pub type Slots = u8;
/// Objects, runs and markers by their numbers: bits of a mask.
pub type Set = u16;

/// The slot that the first snapshot needs.
pub const KEPT: Slots = 1;
/// Beside it in its container: nobody needs it at first.
pub const BESIDE: Slots = 2;
/// In a container of its own: nobody needs it at first.
pub const ALONE: Slots = 4;
/// What writer `n` stores where it finds nothing: its copies of the two.
pub const fn own(writer: usize) -> [(Slots, Slots); 2] {
    match writer {
        0 => [(BESIDE, 8), (ALONE, 16)],
        _ => [(BESIDE, 32), (ALONE, 64)],
    }
}

/// Which rules of the protocol hold.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub waits_for_runs: bool,
    pub condemns_before_listing_runs: bool,
    pub registers_before_looking: bool,
    pub takes_condemned_for_gone: bool,
    pub looks_for_expiry_after_snapshot: bool,
    pub rescues: bool,
    pub never_pardons: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            waits_for_runs: true,
            condemns_before_listing_runs: true,
            registers_before_looking: true,
            takes_condemned_for_gone: true,
            looks_for_expiry_after_snapshot: true,
            rescues: true,
            never_pardons: true,
        }
    }
}

/// Who is there.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    pub writers: usize,
    pub prunes: usize,
}

impl Scene {
    pub const fn new(writers: usize, prunes: usize) -> Self {
        Self { writers, prunes }
    }

    /// The run's number of a prune.
    pub fn prune_run(self, prune: usize) -> usize {
        self.writers + prune
    }
}

/// A container object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Object {
    pub slots: Slots,
    /// Readers look for its slots here: it is the containers' own, or a remap says so.
    pub is_place: bool,
}

/// What condemns objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Marker {
    pub objects: Set,
    /// The runs that are waited for, once that is written down.
    pub waiting: Option<Set>,
}

/// A snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The run that wrote it; the first has none.
    pub run: Option<u8>,
    pub needs: Slots,
}

/// A writer, by how far it is and what it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writer {
    Begins,
    Registered,
    /// It knows what is condemned.
    KnowsCondemned(Set),
    /// It has looked at everything, and will need these.
    Needs(Slots),
    /// It has stored what it did not find.
    Stored(Slots),
    HasSnapshot,
    Checked,
    Ended,
}

/// What a prune knows when it decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prune {
    Begins,
    Registered,
    /// It will condemn, and knows what is needed.
    Marked(Slots),
    /// It will put these slots into a new object, and then condemn.
    Packs { slots: Slots, condemns: Set },
    /// The new object is there.
    Packed { object: Option<u8>, condemns: Set },
    /// The remap is there.
    Remapped { condemns: Set },
    /// It has listed the runs too early (only without the rule).
    ListedFirst { condemns: Set, runs: Set },
    /// The marker is there.
    Condemned { marker: u8 },
    /// The runs are listed.
    Listed { marker: u8, runs: Set },
    /// It will finish this marker.
    Waits { marker: u8 },
    /// Nobody is waited for any more.
    Waited { marker: u8 },
    /// It knows what is needed now.
    MarkedAgain { marker: u8, needs: Slots },
    /// It will put these into a new object first.
    Rescues { marker: u8, slots: Slots, deletes: Set },
    Rescued { marker: u8, object: u8, deletes: Set },
    /// It deletes these.
    Deletes { marker: u8, deletes: Set },
    Deleted { marker: u8 },
    Ended,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// By number; none where it was deleted.
    pub objects: Vec<Option<Object>>,
    pub markers: Vec<Option<Marker>>,
    pub snapshots: Vec<Snapshot>,
    pub registered: Set,
    pub expired: Set,
    pub writers: Vec<Writer>,
    pub prunes: Vec<Prune>,
    /// Crashes that may still happen.
    pub crashes: u8,
}

impl State {
    pub fn first(scene: Scene) -> Self {
        let place = |slots| {
            Some(Object {
                slots,
                is_place: true,
            })
        };
        Self {
            objects: vec![place(KEPT | BESIDE), place(ALONE)],
            markers: Vec::new(),
            snapshots: vec![Snapshot {
                run: None,
                needs: KEPT,
            }],
            registered: 0,
            expired: 0,
            writers: vec![Writer::Begins; scene.writers],
            prunes: vec![Prune::Begins; scene.prunes],
            crashes: 1,
        }
    }

    /// Objects that any marker condemns.
    pub fn condemned(&self) -> Set {
        let markers = self.markers.iter().flatten();
        markers.fold(0, |all, marker| all | marker.objects)
    }

    /// Slots that readers find in objects that are not in `without`.
    pub fn found(&self, without: Set) -> Slots {
        let objects = self.objects.iter().enumerate();
        objects
            .filter(|(number, _)| without & (1 << number) == 0)
            .filter_map(|(_, object)| object.filter(|object| object.is_place))
            .fold(0, |all, object| all | object.slots)
    }

    /// What all snapshots need, doubtful ones, too.
    pub fn needed(&self) -> Slots {
        let snapshots = self.snapshots.iter();
        snapshots.fold(0, |all, snapshot| all | snapshot.needs)
    }

    /// What is lost.
    pub fn lost(&self) -> Slots {
        let is_doubtful = |snapshot: &&Snapshot| {
            snapshot
                .run
                .is_some_and(|run| self.expired & (1 << run) != 0)
        };
        let sure = self.snapshots.iter().filter(|it| !is_doubtful(it));
        sure.fold(0, |all, snapshot| all | snapshot.needs) & !self.found(0)
    }

    pub fn add_object(&mut self, slots: Slots, is_place: bool) -> u8 {
        self.objects.push(Some(Object { slots, is_place }));
        (self.objects.len() - 1) as u8
    }
}
