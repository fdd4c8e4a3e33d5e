//! The keeper of the pool: looks up which addresses control has, starts a driver for each that is new, and lets those
//! go that are gone.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use gitdoor_proto::endpoint::{Address, Connector};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::driver::Driver;
use super::holder::Holder;
use super::pool::{Live, Resolve, Times};
use super::streams::Streams;

/// Time for one look-up.
const LOOKUP: Duration = Duration::from_secs(5);
/// While no session lives names are looked up this often.
const SOON: Duration = Duration::from_secs(1);

/// What keeps a driver for every address.
pub(super) struct Keeper {
    live: Arc<Live>,
    connector: Connector,
    holder: Option<Holder>,
    streams: Arc<Streams>,
    leave: CancellationToken,
    times: Times,
    /// Dropped, a driver leaves.
    drivers: HashMap<Address, DropGuard>,
}

/// What a name was found to stand for.
#[derive(Default)]
struct Found {
    addresses: Vec<Address>,
    failing: bool,
}

impl Keeper {
    /// A keeper that has found nothing yet.
    pub(super) fn new(
        live: Arc<Live>,
        connector: Connector,
        streams: Arc<Streams>,
        leave: CancellationToken,
        times: Times,
    ) -> Self {
        Self { live, connector, holder: Holder::draw(), streams, leave, times, drivers: HashMap::new() }
    }

    /// Keeps drivers until told to leave.
    pub(super) async fn keep(mut self, controls: Vec<impl Resolve>) {
        let leave = self.leave.clone();
        tokio::select! { () = self.watch(controls) => {}, () = leave.cancelled() => {} }
    }

    async fn watch(&mut self, controls: Vec<impl Resolve>) {
        let mut found: Vec<_> = controls.iter().map(|_| Found::default()).collect();
        loop {
            let began = Instant::now();
            self.look_up(&controls, &mut found).await;
            let live = Arc::clone(&self.live);
            let lost = async {
                live.until(|sessions| sessions == 0).await;
                sleep_until(began + SOON).await;
            };
            tokio::select! { () = sleep_until(began + self.times.lookup) => {}, () = lost => {} }
        }
    }

    /// Looks every name up. One that is slow does not keep the others waiting.
    async fn look_up(&mut self, controls: &[impl Resolve], found: &mut [Found]) {
        let mut lookups: FuturesUnordered<_> = controls
            .iter()
            .enumerate()
            .map(|(place, control)| async move {
                let addresses = timeout(LOOKUP, control.resolve()).await;
                (place, control, addresses.unwrap_or_else(|elapsed| Err(elapsed.into())))
            })
            .collect();
        while let Some((place, control, addresses)) = lookups.next().await {
            if let Some(found) = found.get_mut(place) {
                found.take_in(control, addresses);
            }
            self.settle(found);
        }
    }

    /// Starts drivers for what is new, and lets go what is gone.
    fn settle(&mut self, found: &[Found]) {
        let wanted: HashSet<_> = found.iter().flat_map(|found| &found.addresses).collect();
        self.drivers.retain(|address, _| wanted.contains(address));
        for address in wanted {
            if !self.drivers.contains_key(address) {
                self.drivers.insert(address.clone(), self.start(address.clone()));
            }
        }
    }

    fn start(&self, address: Address) -> DropGuard {
        let leave = self.leave.child_token();
        let driver = Driver {
            address,
            connector: self.connector.clone(),
            holder: self.holder.clone(),
            live: Arc::clone(&self.live),
            streams: Arc::clone(&self.streams),
            leave: leave.clone(),
            grace: self.times.grace,
        };
        tokio::spawn(driver.drive());
        leave.drop_guard()
    }
}

impl Found {
    /// A look-up that fails, or finds nothing, leaves what there is.
    fn take_in(&mut self, name: &impl Display, addresses: io::Result<Vec<Address>>) {
        let cause = match addresses {
            Ok(addresses) if !addresses.is_empty() => {
                self.addresses = addresses;
                self.failing = false;
                return;
            }
            Ok(_) => "no address".to_owned(),
            Err(error) => error.to_string(),
        };
        if !self.failing {
            tracing::warn!(control = %name, cause, "control's name cannot be looked up");
            self.failing = true;
        }
    }
}
