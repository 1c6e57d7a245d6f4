//! Colour maps: a few colours each, mixed in between.

/// How values become colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColourMap {
    Viridis,
    Magma,
    Plasma,
    /// From blue over grey to red, for values around a middle
    Coolwarm,
    Gray,
}

type Rgb = [u8; 3];

impl ColourMap {
    /// Colours at equal distances. The four maps are those of matplotlib (public domain, CC0), at nine places each.
    fn stops(self) -> &'static [Rgb] {
        match self {
            Self::Viridis => &[
                [68, 1, 84],
                [71, 44, 122],
                [59, 81, 139],
                [44, 113, 142],
                [33, 144, 141],
                [39, 173, 129],
                [92, 200, 99],
                [170, 220, 50],
                [253, 231, 37],
            ],
            Self::Magma => &[
                [0, 0, 4],
                [28, 16, 68],
                [79, 18, 123],
                [129, 37, 129],
                [181, 54, 122],
                [229, 80, 100],
                [251, 135, 97],
                [254, 194, 135],
                [252, 253, 191],
            ],
            Self::Plasma => &[
                [13, 8, 135],
                [75, 3, 161],
                [125, 3, 168],
                [168, 34, 150],
                [203, 70, 121],
                [229, 107, 93],
                [248, 148, 65],
                [253, 195, 40],
                [240, 249, 33],
            ],
            Self::Coolwarm => &[
                [59, 76, 192],
                [98, 130, 234],
                [141, 176, 254],
                [184, 208, 249],
                [221, 221, 221],
                [245, 196, 173],
                [244, 154, 123],
                [222, 96, 77],
                [180, 4, 38],
            ],
            Self::Gray => &[[0, 0, 0], [255, 255, 255]],
        }
    }

    /// The colour of a place between 0 and 1; places outside get the colour of the nearer end.
    pub(crate) fn colour(self, place: f64) -> Rgb {
        let stops = self.stops();
        let last = stops.len() - 1;
        let place = place.clamp(0.0, 1.0) * last as f64;
        let below = (place as usize).min(last - 1);
        let part = place - below as f64;
        let (from, to) = (stops[below], stops[below + 1]);
        std::array::from_fn(|channel| (f64::from(from[channel]) * (1.0 - part) + f64::from(to[channel]) * part).round() as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_middles() {
        assert_eq!(ColourMap::Gray.colour(0.5), [128, 128, 128]);
        assert_eq!(ColourMap::Viridis.colour(0.0), [68, 1, 84]);
        assert_eq!(ColourMap::Viridis.colour(1.0), [253, 231, 37]);
        assert_eq!(ColourMap::Magma.colour(7.0), [252, 253, 191]);
    }
}
