//! Places names beside points so that they can be read: greedily, in the order of the points,
//! each at the first place around its point where it overlaps nothing.

/// Size of the letters of a name.
const LETTER: [f64; 2] = [6.8, 12.0];

/// Where a name stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    /// Its end next to the point, or its middle.
    pub x: f64,
    /// Which of them: `start`, `middle` or `end`, as SVG has it.
    pub anchor: &'static str,
    /// Its line of writing.
    pub baseline: f64,
    /// It stands so far from its point that a line should lead there.
    pub is_far: bool,
    /// The place of the name next to its point.
    pub near: (f64, f64),
}

/// Left, top, right, bottom.
type Box = [f64; 4];

/// About how wide a text is.
pub fn width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER[0]
}

/// A place for each name, within `area` where possible.
pub fn place(points: &[(f64, f64)], names: &[&str], area: Box) -> Vec<Label> {
    let mut taken: Vec<Box> = points
        .iter()
        .map(|(x, y)| [x - 6.0, y - 6.0, x + 6.0, y + 6.0])
        .collect();
    let mut labels = Vec::with_capacity(points.len());
    for (&point, name) in points.iter().zip(names) {
        let candidates: Vec<Box> = candidates(point, width(name)).collect();
        let is_free = |place: &&Box| {
            is_within(place, &area) && !taken.iter().any(|other| overlap(place, other))
        };
        let chosen = candidates
            .iter()
            .position(|place| is_free(&place))
            .unwrap_or(0);
        let place = candidates[chosen];
        taken.push(place);
        let near_x = point.0.clamp(place[0], place[2]);
        let near_y = if point.1 < place[1] {
            place[1]
        } else {
            place[3]
        };
        let (x, anchor) = if place[0] > point.0 {
            (place[0], "start")
        } else if place[2] < point.0 {
            (place[2], "end")
        } else {
            (f64::midpoint(place[0], place[2]), "middle")
        };
        labels.push(Label {
            x,
            anchor,
            baseline: place[3] - 3.0,
            is_far: chosen >= 8,
            near: (near_x, near_y),
        });
    }
    labels
}

/// Places around a point: eight next to it, then rings farther out.
fn candidates((x, y): (f64, f64), width: f64) -> impl Iterator<Item = Box> {
    let at = move |left: f64, middle: f64| {
        let half = LETTER[1] / 2.0 + 1.0;
        [left, middle - half, left + width, middle + half]
    };
    let near = [
        at(x + 8.0, y),
        at(x - 8.0 - width, y),
        at(x - width / 2.0, y - 14.0),
        at(x - width / 2.0, y + 14.0),
        at(x + 6.0, y - 11.0),
        at(x + 6.0, y + 11.0),
        at(x - 6.0 - width, y - 11.0),
        at(x - 6.0 - width, y + 11.0),
    ];
    let far = (1..=12).flat_map(move |ring| {
        let away = 12.0 + 13.0 * f64::from(ring);
        [
            at(x + 10.0, y - away),
            at(x + 10.0, y + away),
            at(x - 10.0 - width, y - away),
            at(x - 10.0 - width, y + away),
        ]
    });
    near.into_iter().chain(far)
}

fn overlap(a: &Box, b: &Box) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

fn is_within(a: &Box, area: &Box) -> bool {
    a[0] >= area[0] && a[1] >= area[1] && a[2] <= area[2] && a[3] <= area[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_points_on_one_spot_do_not_overlap() {
        let points: Vec<_> = (0..16).map(|i| (200.0 + f64::from(i), 150.0)).collect();
        let names = vec!["some-algorithm"; 16];
        let labels = place(&points, &names, [0.0, 0.0, 600.0, 400.0]);
        let left = |label: &Label| match label.anchor {
            "start" => label.x,
            "end" => label.x - width(names[0]),
            _ => label.x - width(names[0]) / 2.0,
        };
        for (index, label) in labels.iter().enumerate() {
            assert!(left(label) >= 0.0 && left(label) + width(names[0]) <= 600.0);
            for other in &labels[..index] {
                let is_beside = (left(label) - left(other)).abs() >= width(names[0]) - 1e-9;
                let is_above = (label.baseline - other.baseline).abs() >= 12.0;
                assert!(is_beside || is_above, "{label:?} {other:?}");
            }
        }
        assert!(!labels[0].is_far);
        assert!(labels.iter().any(|label| label.is_far));
    }
}
