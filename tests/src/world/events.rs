//! What a data plane tells of itself: its events, one a request, and its gauges. The events need `--log-format=json`.

use serde_json::Value;

use super::World;
use crate::wait::until;

impl World {
    /// The events of the requests that have ended, in order.
    pub fn events(&self) -> Vec<Value> {
        let events = self.parsed_lines(false);
        events.into_iter().filter(|event| event["message"] == "request").collect()
    }

    /// The events of control, in order.
    pub fn control_events(&self) -> Vec<Value> {
        self.parsed_lines(true)
    }

    fn parsed_lines(&self, of_control: bool) -> Vec<Value> {
        let lines = self.lines();
        let lines = lines.iter().filter_map(|line| line.split_once(": "));
        let lines = lines.filter(|(part, _)| part.starts_with("control") == of_control);
        lines.filter_map(|(_, line)| serde_json::from_str(line).ok()).collect()
    }

    /// The last event that has this value here, which may still be on its way.
    pub async fn event(&self, field: &str, value: &str) -> Value {
        self.event_of(&[(field, value)]).await
    }

    /// The last event that has all these values.
    pub async fn event_of(&self, facts: &[(&str, &str)]) -> Value {
        let has = |event: &Value| facts.iter().all(|(field, value)| event[*field] == *value);
        let find = || self.events().into_iter().rfind(|event| has(event));
        until(&format!("an event with {facts:?}"), async || find().is_some()).await;
        find().expect("it was there")
    }

    /// A metric of a data plane, all its labels added up; 0 where there is none.
    pub async fn metric(&self, number: usize, name: &str) -> f64 {
        let text = self.dataplane_admin(number, "/metrics").await.text();
        let samples = text.lines().filter(|line| line.split([' ', '{']).next() == Some(name));
        samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Where each part that runs serves `/metrics`, after the part's name.
    pub fn admin_addresses(&self) -> Vec<(String, String)> {
        let running = self.processes().filter(|process| process.is_running());
        running.map(|process| (process.name().to_owned(), process.address("admin").to_owned())).collect()
    }

    /// Waits until no request is under way at a data plane: none of its tasks is left.
    pub async fn quiet(&self, number: usize) {
        until("no request is under way", async || {
            self.metric(number, "gitdoor_dataplane_streams").await.abs() < 0.5
        })
        .await;
    }
}
