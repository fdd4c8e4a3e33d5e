//! What an answer says, as far as the session that brings it needs to know.

use gitdoor_proto::v1;
use gitdoor_proto::v1::session_response::Answer;

/// Whether it is a permit, which takes a place among the requests of its run.
pub(super) fn permits(answer: &Answer) -> bool {
    use v1::authorize_response::Verdict;
    matches!(answer, Answer::Authorize(v1::AuthorizeResponse { verdict: Some(Verdict::Permit(_)) }))
}

/// Whether control says that its store does not answer: another control's may.
pub(super) fn is_outage(answer: &Answer) -> bool {
    refusal(answer).is_some_and(|refusal| refusal.reason() == v1::Reason::StoreUnavailable)
}

fn refusal(answer: &Answer) -> Option<&v1::Refusal> {
    use v1::authorize_response::Verdict as Authorize;
    use v1::bind_run_response::Verdict as Bind;
    use v1::renew_lease_response::Verdict as Renew;
    use v1::replace_token_response::Verdict as Replace;
    match answer {
        Answer::Authorize(answer) => match answer.verdict.as_ref()? {
            Authorize::Refusal(refusal) => Some(refusal),
            Authorize::Permit(_) => None,
        },
        Answer::Bind(answer) => match answer.verdict.as_ref()? {
            Bind::Refusal(refusal) => Some(refusal),
            Bind::Bound(_) => None,
        },
        Answer::Renew(answer) => match answer.verdict.as_ref()? {
            Renew::Refusal(refusal) => Some(refusal),
            Renew::Lease(_) => None,
        },
        Answer::ReplaceToken(answer) => match answer.verdict.as_ref()? {
            Replace::Refusal(refusal) => Some(refusal),
            Replace::Token(_) => None,
        },
        Answer::Report(answer) => answer.refusal.as_ref(),
        Answer::Revocation(_) | Answer::Draining(_) => None,
    }
}
