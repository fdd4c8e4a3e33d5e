//! The documents keep up with the code.

use gitdoor_proto::Reason;

#[test]
fn every_reason_is_explained() {
    let document = include_str!("../../docs/refusals.md");
    for reason in Reason::ALL {
        let row = format!("\n| `{}` | ", reason.as_str());
        assert_eq!(document.matches(&row).count(), 1, "docs/refusals.md: {}", reason.as_str());
    }
}
