//! Runs come, show life, and go.

use super::*;
use engine::object::MemoryStore;
use zeroize::Zeroizing;

fn vault() -> Arc<Vault> {
    let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
    Arc::new(Vault::new(ObjectId([1; 16]), secrets, true))
}

#[test]
fn runs_come_show_life_and_go() {
    let store: Arc<dyn ObjectStore> = Arc::new(MemoryStore::new());
    let vault = vault();
    let listed = || registered(store.as_ref(), &vault).unwrap();
    let run = Registration::begin(&store, &vault, RunKind::Writer, "here").unwrap();
    let other = Registration::begin(&store, &vault, RunKind::Prune, "there").unwrap();
    assert_eq!(listed().len(), 2);
    let first = listed()[&run.id()].clone();
    assert_eq!(
        (first.kind, &first.host[..], first.signs),
        (RunKind::Writer, "here", 0)
    );
    run.show_life().unwrap();
    assert_eq!(listed()[&run.id()], first, "not so soon");
    run.shared.show_now(&mut run.shared.state()).unwrap();
    assert_eq!(listed()[&run.id()].signs, 1);
    assert_eq!(listed().len(), 2);
    other.end().unwrap();
    other.show_life().unwrap();
    assert_eq!(listed().into_keys().collect::<Vec<_>>(), [run.id()]);
    drop(run);
    assert!(listed().is_empty());
}

#[test]
fn whoever_looks_at_any_time_finds_a_run() {
    let store: Arc<dyn ObjectStore> = Arc::new(MemoryStore::new());
    let vault = vault();
    let run = Registration::begin(&store, &vault, RunKind::Writer, "here").unwrap();
    let key = ObjectKey::new(ObjectKind::Run, run.id());
    for _ in 0..3 {
        // Somebody has listed the objects of runs; a sign comes before they are read.
        let mut listed = Vec::new();
        let mut list = |id, _| listed.push(ObjectKey::new(ObjectKind::Run, id));
        store.list(ObjectKind::Run, &mut list).unwrap();
        run.shared.show_now(&mut run.shared.state()).unwrap();
        assert!(listed.contains(&key) && store.get(&key, 1 << 20).is_ok());
    }
    run.end().unwrap();
    assert!(registered(store.as_ref(), &vault).unwrap().is_empty());
}

#[test]
fn earlier_signs_that_stayed_go_at_the_end() {
    let store: Arc<dyn ObjectStore> = Arc::new(MemoryStore::new());
    let vault = vault();
    let run = Registration::begin(&store, &vault, RunKind::Writer, "here").unwrap();
    run.shared.show_now(&mut run.shared.state()).unwrap();
    // As when the store would not delete them.
    for number in 0..3 {
        let mut state = run.shared.state();
        let before = state.sign.unwrap();
        run.shared.show_now(&mut state).unwrap();
        assert!(state.left.is_empty());
        let key = ObjectKey::new(ObjectKind::Run, before);
        store.put(&key, b"still there").unwrap();
        state.left.push(before);
        drop(state);
        let mut there = 0;
        store.list(ObjectKind::Run, &mut |_, _| there += 1).unwrap();
        assert_eq!(
            there, 3,
            "after sign {number}, earlier ones were tried again"
        );
    }
    run.end().unwrap();
    let mut there = 0;
    store.list(ObjectKind::Run, &mut |_, _| there += 1).unwrap();
    assert_eq!(there, 0);
}

#[test]
fn who_is_taken_for_dead_sees_it() {
    let store: Arc<dyn ObjectStore> = Arc::new(MemoryStore::new());
    let vault = vault();
    let run = Registration::begin(&store, &vault, RunKind::Writer, "here").unwrap();
    assert!(!run.is_expired().unwrap());
    run.shared.show_now(&mut run.shared.state()).unwrap();
    for _ in 0..2 {
        expire(store.as_ref(), &vault, run.id()).unwrap();
        assert!(run.is_expired().unwrap());
        assert_eq!(expired(store.as_ref()).unwrap(), [run.id()]);
        assert!(registered(store.as_ref(), &vault).unwrap().is_empty());
    }
    // It goes on, and registers anew without knowing: it stays expired.
    run.shared.show_now(&mut run.shared.state()).unwrap();
    assert!(run.is_expired().unwrap());
}

#[test]
fn what_can_not_be_read_may_be_a_writer() {
    let store: Arc<dyn ObjectStore> = Arc::new(MemoryStore::new());
    let vault = vault();
    let id = ObjectId([9; 16]);
    store
        .put(&ObjectKey::new(ObjectKind::Run, id), b"what is this?")
        .unwrap();
    let runs = registered(store.as_ref(), &vault).unwrap();
    assert_eq!(runs[&id].kind, RunKind::Writer);
    expire(store.as_ref(), &vault, id).unwrap();
    assert!(registered(store.as_ref(), &vault).unwrap().is_empty());
}

#[test]
fn a_process_that_has_ended_is_known() {
    let own = Process::own().expect("Linux tells");
    assert!(!own.has_ended());
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let number = child.id();
    child.wait().unwrap();
    let ended = Process {
        number,
        ..own.clone()
    };
    assert!(ended.has_ended());
    let elsewhere = Process {
        place: "elsewhere".to_owned(),
        ..ended
    };
    assert!(!elsewhere.has_ended());
}

#[test]
fn a_run_comes_back_and_newer_fields_stay() {
    let run = Run {
        id: ObjectId([3; 16]),
        kind: RunKind::Reader,
        signs: 300,
        started: Timestamp {
            seconds: -5,
            nanoseconds: 7,
        },
        host: "häst".to_owned(),
        program: "p".to_owned(),
        process: Some(Process {
            place: "here".to_owned(),
            number: 12,
        }),
        unknown: UnknownFields::default(),
    };
    let body = run.encode();
    assert_eq!(Run::decode(&body).unwrap(), run);
    for end in 0..body.len() {
        let _ = Run::decode(&body[..end]);
    }
}
