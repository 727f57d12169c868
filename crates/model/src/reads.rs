//! What a run has read of its platform: with another platform that says the same there, it is the same run.

use dray_platform::{
    ParameterReads, PlatformFile, RecordedParameters, Requester, Service, Transfer,
};

/// What a run has read of its platform.
#[derive(Debug, Clone)]
pub struct Reads {
    parameters: ParameterReads,
    services: Vec<Answer>,
}

/// What the platform said of a transfer.
#[derive(Debug, Clone)]
struct Answer {
    requester: Requester,
    transfer: Transfer,
    service: Service,
}

impl Reads {
    /// Whether another platform of the same topology has the same answers: then the run is the same with it.
    pub fn same_in(&self, platform: &PlatformFile) -> bool {
        let same = |a: &Answer| platform.service(a.requester, &a.transfer) == a.service;
        self.parameters.same_in(platform.parameters()) && self.services.iter().all(same)
    }
}

/// What transfers cost in a world, each worked out once.
#[derive(Debug, Default)]
pub(crate) struct Services(Vec<Answer>);

impl Services {
    /// What `platform` says of a transfer.
    pub(crate) fn of(
        &mut self,
        platform: &PlatformFile,
        requester: Requester,
        transfer: &Transfer,
    ) -> Service {
        let transfer = transfer.at_the_lowest_addresses();
        let known = |a: &&Answer| a.requester == requester && a.transfer == transfer;
        if let Some(answer) = self.0.iter().find(known) {
            return answer.service;
        }
        let service = platform.service(requester, &transfer);
        self.0.push(Answer {
            requester,
            transfer,
            service,
        });
        service
    }

    /// All answers, with the parameters that were read besides.
    pub(crate) fn with(&self, parameters: &RecordedParameters) -> Reads {
        Reads {
            parameters: parameters.reads(),
            services: self.0.clone(),
        }
    }
}
