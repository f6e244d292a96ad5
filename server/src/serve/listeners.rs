//! The listeners of all ports, their addresses and certificates.

use std::net::SocketAddr;

use cairn_net::Listener;
use cairn_observe::Plane;
use cairn_sharing::{ListenerUrl, ListenerUrls};

use super::plan::Plan;
use crate::addresses::Addresses;
use crate::certificates::{Certificates, CertificatesRead};
use crate::config::{Settings, keys};
use crate::error::ServeError;
use crate::host::port::{self, PortError};

/// The listeners of one executor.
pub(super) struct Listeners {
    pub(super) data: Listener,
    pub(super) management: Listener,
    /// Serves shares; `None` if it is disabled.
    pub(super) console: Option<Listener>,
}

impl Listeners {
    pub(super) fn addresses(&self) -> Addresses {
        Addresses {
            data: self.data.local_addr(),
            management: self.management.local_addr(),
            console: self.console.as_ref().map(Listener::local_addr),
        }
    }
}

/// Binds every port, once per executor.
pub(super) fn bind(
    settings: &Settings,
    executors: usize,
    certificates: &Certificates,
) -> Result<Vec<Listeners>, ServeError> {
    let bind_one = |address: SocketAddr, key| {
        // Without the first step, the port would silently be shared with another server of the same user.
        let bound = port::try_listen(address).and_then(|()| cairn_net::bind(address, executors));
        bound.map_err(|error| {
            ServeError::Ports(vec![PortError::new(address, settings.values.source(key), error)])
        })
    };
    let data = bind_one(settings.server.s3_bind.address, &keys::S3_BIND)?;
    let management = bind_one(settings.server.api_bind.address, &keys::API_BIND)?;
    let console: Vec<Option<Listener>> = match &settings.server.console_bind {
        Some(bind) => bind_one(bind.address, &keys::CONSOLE_BIND)?.into_iter().map(Some).collect(),
        None => (0..executors).map(|_| None).collect(),
    };
    let configured = |listener: Listener, plane| {
        let listener = listener.with_trusted_proxies(settings.server.trusted_proxies.clone());
        match certificates.of(plane) {
            Some(tls) => listener.with_tls(tls.with_strict_transport(settings.server.tls.hsts_seconds)),
            None => listener,
        }
    };
    let of_executor = |((data, management), console): ((Listener, Listener), Option<Listener>)| Listeners {
        data: configured(data, Plane::Data),
        management: configured(management, Plane::Management),
        console: console.map(|listener| configured(listener, Plane::Console)),
    };
    Ok(data.into_iter().zip(management).zip(console).map(of_executor).collect())
}

/// The bound ports.
pub(super) struct Ports {
    pub(super) certificates: Certificates,
    /// One for each executor.
    pub(super) listeners: Vec<Listeners>,
    pub(super) addresses: Addresses,
}

impl Ports {
    /// Binds every port.
    pub(super) fn open(plan: &Plan, certificates: CertificatesRead) -> Result<Self, ServeError> {
        let (settings, executors) = (&plan.settings, plan.budget.executors);
        let certificates = Certificates::start(certificates, executors).map_err(ServeError::Certificate)?;
        let listeners = bind(settings, executors, &certificates)?;
        let addresses = listeners.first().map(Listeners::addresses);
        let addresses = addresses.ok_or(ServeError::Host(cairn_net::StartError::NoExecutors))?;
        Ok(Self { certificates, listeners, addresses })
    }

    /// Returns where visitors find links.
    pub(super) fn urls_of_links(&self) -> ListenerUrls {
        let is_secure = |plane| self.certificates.of(plane).is_some();
        let url = |address, plane| ListenerUrl { address, is_secure: is_secure(plane) };
        ListenerUrls {
            share: match self.addresses.console {
                Some(console) => url(console, Plane::Console),
                None => url(self.addresses.management, Plane::Management),
            },
            embed: url(self.addresses.data, Plane::Data),
        }
    }
}
