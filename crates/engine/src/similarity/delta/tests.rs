//! Deltas against a plain model: what is decoded is what was encoded.

use super::*;

#[test]
fn a_delta_leads_back() {
    let base: Vec<u8> = (0..5000u32).map(|i| (i * i >> 7) as u8).collect();
    let mut target = base.clone();
    target.splice(1000..1010, *b"hello");
    target.splice(3000..3000, *b"what was not there before");
    let mut delta = Vec::new();
    assert!(DeltaEncoder::new().encode(&base, &target, 1000, &mut delta));
    assert!(delta.len() < 60, "{}", delta.len());
    let mut back = Vec::new();
    decode(&base, &delta, target.len(), &mut back).unwrap();
    assert_eq!(back, target);
}
