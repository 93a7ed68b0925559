//! Every form beside the specification.

use super::{BLOCK, Order, PART, SCRAMBLER, asymmetric, scalar, symmetric};
use proptest::prelude::*;

const ORDERS: [Order; 2] = [Order::BigEndian, Order::Scrambled];

/// Bytes of few symbols with runs, or of many: ties and long heads are common.
fn any_bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    let symbol = prop_oneof![
        any::<u8>(),
        Just(0u8),
        Just(255),
        254..=255u8,
        Just(b' '),
        0..=1u8
    ];
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..length),
        proptest::collection::vec(250..=255u8, 0..length),
        proptest::collection::vec((symbol, 1usize..200), 0..length / 50).prop_map(|runs| {
            let run = |(byte, count)| std::iter::repeat_n(byte, count);
            runs.into_iter().flat_map(run).collect()
        }),
    ]
}

#[test]
fn values_by_hand() {
    let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(
        scalar::value(Order::BigEndian, bytes),
        0x0102_0304_0506_0708
    );
    let product = |number: u16| u64::from(number.wrapping_mul(SCRAMBLER));
    let expected =
        product(0x0201) << 48 | product(0x0403) << 32 | product(0x0605) << 16 | product(0x0807);
    assert_eq!(scalar::value(Order::Scrambled, bytes), expected);
    assert_eq!(scalar::value(Order::Scrambled, [0; 8]), 0);
}

#[test]
fn specification_by_hand() {
    let mut bytes = [0u8; 40];
    (bytes[3], bytes[10], bytes[20]) = (5, 6, 6);
    let order = Order::BigEndian;
    // The value at 3 begins with 5; seven positions behind it a greater one begins.
    assert_eq!(scalar::asymmetric(order, &bytes, 6), Some(3));
    assert_eq!(scalar::asymmetric(order, &bytes, 7), Some(10));
    // Of equals the first.
    assert_eq!(scalar::asymmetric(order, &bytes, 30), Some(10));
    assert_eq!(scalar::symmetric(order, &bytes, 3), Some(3));
    assert_eq!(scalar::symmetric(order, &bytes, 4), Some(10));
    // Equals within reach are no maximum.
    assert_eq!(scalar::symmetric(order, &bytes, 10), None);
    assert_eq!(scalar::asymmetric(order, &bytes[..7], 1), None);
    assert_eq!(scalar::symmetric(order, &bytes[..7], 0), None);
}

#[test]
fn every_length_and_place_of_a_maximum() {
    let length = 2 * BLOCK + PART + 20;
    for order in ORDERS {
        for end in 0..length {
            let bytes = vec![7u8; end];
            for reach in [0, 1, 9, BLOCK] {
                assert_eq!(
                    asymmetric(order, &bytes, reach),
                    scalar::asymmetric(order, &bytes, reach)
                );
                assert_eq!(
                    symmetric(order, &bytes, reach),
                    scalar::symmetric(order, &bytes, reach)
                );
            }
        }
        for place in 0..length {
            let mut bytes = vec![7u8; length];
            bytes[place] = 255;
            for reach in [1, 20, BLOCK + 3, usize::MAX] {
                assert_eq!(
                    asymmetric(order, &bytes, reach),
                    scalar::asymmetric(order, &bytes, reach.min(length))
                );
            }
            for reach in [0, 1, 20, BLOCK + 3, usize::MAX] {
                let naive = scalar::symmetric(order, &bytes, reach.min(length));
                assert_eq!(symmetric(order, &bytes, reach), naive);
            }
        }
    }
}

#[test]
fn rising_and_falling_bytes() {
    let rising: Vec<u8> = (0..2000u32).map(|index| (index / 9) as u8).collect();
    let falling: Vec<u8> = rising.iter().rev().copied().collect();
    for order in ORDERS {
        for bytes in [&rising, &falling] {
            for reach in [0, 1, 5, 100, 700] {
                assert_eq!(
                    asymmetric(order, bytes, reach),
                    scalar::asymmetric(order, bytes, reach)
                );
                assert_eq!(
                    symmetric(order, bytes, reach),
                    scalar::symmetric(order, bytes, reach)
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn asymmetric_is_as_specified(bytes in any_bytes(1500), window in 0usize..600) {
        for order in ORDERS {
            prop_assert_eq!(
                asymmetric(order, &bytes, window),
                scalar::asymmetric(order, &bytes, window)
            );
        }
    }

    #[test]
    fn symmetric_is_as_specified(
        bytes in any_bytes(1500),
        reach in prop_oneof![0usize..20, 0usize..300],
    ) {
        for order in ORDERS {
            prop_assert_eq!(
                symmetric(order, &bytes, reach),
                scalar::symmetric(order, &bytes, reach)
            );
        }
    }
}
