//! `transpose`: the axes in another order, which is the order of strides.

use zarr_codec_api::Stage;

use crate::recipe::Step;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    order: Order,
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Order {
    Axes(Vec<usize>),
    Draft(DraftOrder),
}

/// Drafts of the specification had names for two orders.
#[derive(serde::Deserialize)]
enum DraftOrder {
    C,
    F,
}

pub(crate) fn step(stage: &Stage) -> Option<Step> {
    let config: Config = stage.codec.config().ok()?;
    let array = stage.decoded.as_array()?;
    array.data_type.fixed_size()?;
    let rank = array.shape.len();
    let order = match config.order {
        Order::Axes(order) => order,
        Order::Draft(DraftOrder::C) => (0..rank).collect(),
        Order::Draft(DraftOrder::F) => (0..rank).rev().collect(),
    };
    let mut seen = vec![false; rank];
    let is_permutation =
        order.len() == rank && order.iter().all(|&axis| seen.get_mut(axis).is_some_and(|seen| !std::mem::replace(seen, true)));
    is_permutation.then_some(Step::Transpose { order })
}
