//! A resolver for ureq that refuses forbidden addresses.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver as UreqResolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::unversioned::transport::time::Duration as UreqDuration;

use super::attempt::{Failure, FailureKind};
use super::call;
use super::probe::Step;
use crate::destination::{Host, LookupError, Resolver, TargetPolicy, TargetUrl};
use crate::limits::ADDRESSES_MAX;

/// Looks the host up and judges what was found. What it returns are the only addresses that ureq knows.
pub(super) struct JudgingResolver {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) policy: Arc<TargetPolicy>,
    pub(super) time_limit: Duration,
}

impl UreqResolver for JudgingResolver {
    fn resolve(&self, _: &Uri, _: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let time_limit = match timeout.after {
            UreqDuration::Exact(left) => left.min(self.time_limit),
            UreqDuration::NotHappening => self.time_limit,
        };
        let target = call::with(|call| {
            call.begin(Step::Resolve);
            call.target.clone()
        });
        let Some(target) = target else {
            return Err(ureq::Error::HostNotFound);
        };
        match self.judged(&target, time_limit) {
            Ok(judged) => {
                let mut found = self.empty();
                judged.iter().take(ADDRESSES_MAX).for_each(|address| found.push(*address));
                call::with(|call| call.judged = judged);
                Ok(found)
            }
            Err(failure) => {
                call::with(|call| {
                    call.end(false, || failure.text.clone());
                    call.failure = Some(failure);
                });
                Err(ureq::Error::HostNotFound)
            }
        }
    }
}

impl JudgingResolver {
    /// Returns the addresses of a target, all of which are allowed.
    fn judged(&self, target: &TargetUrl, time_limit: Duration) -> Result<Vec<SocketAddr>, Failure> {
        let found: Vec<SocketAddr> = match &target.host {
            Host::Address(address) => vec![SocketAddr::new(*address, target.port)],
            Host::Name { name, absolute } => {
                let name = if *absolute { format!("{name}.") } else { name.clone() };
                let found =
                    self.resolver.resolve(&name, time_limit).map_err(|error| failed_lookup(&name, &error))?;
                if found.is_empty() {
                    return Err(Failure::new(FailureKind::Resolve, format!("{name} has no address")));
                }
                found.into_iter().map(|address| SocketAddr::new(address, target.port)).collect()
            }
        };
        call::with(|call| {
            call.end(true, || found_detail(target, &found));
            call.begin(Step::Check);
        });
        for address in &found {
            self.policy.judge(*address).map_err(|refused| {
                let text = match &target.host {
                    Host::Name { name, .. } => {
                        format!("{name} has an address that is not allowed: {refused}")
                    }
                    Host::Address(_) => refused.to_string(),
                };
                Failure::new(FailureKind::Refused, text)
            })?;
        }
        call::with(|call| {
            call.end(true, || "every address is allowed".to_owned());
            // If a connection must be made first, the connector says so.
            call.begin(Step::Response);
        });
        Ok(found)
    }
}

fn failed_lookup(name: &str, error: &LookupError) -> Failure {
    let kind = if *error == LookupError::TimedOut { FailureKind::Timeout } else { FailureKind::Resolve };
    Failure::new(kind, format!("{name}: {error}"))
}

fn found_detail(target: &TargetUrl, found: &[SocketAddr]) -> String {
    let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
    let text = match &target.host {
        Host::Address(address) => format!("{address} is an address"),
        Host::Name { name, .. } => {
            let list: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
            format!("{name} has the address {}", list.join(" and "))
        }
    };
    Failure::new(FailureKind::Resolve, text).text
}

impl fmt::Debug for JudgingResolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("JudgingResolver").finish_non_exhaustive()
    }
}
