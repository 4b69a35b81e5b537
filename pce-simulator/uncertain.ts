/**
 * What no source settles about the PCE, and what this simulator does there: always the mildest documented way. Every entry names
 * the fact and its place in docs/pce-facts.md, and is the only place that decides it.
 */
export const UNCERTAIN = {
  /** P4: a second DELETE of an object that waits for its deletion. */
  secondDeletionStatus: 204,
  /** P33: rules and boundaries name what they refer to by draft hrefs; clients that send active ones are understood. */
  draftsTakeActiveReferences: true,
  /** P4: a write to an active path is refused with 405 or 406, nobody says which. */
  activeWriteStatus: 405,
  /** P30: the body of a 404 may be empty, `[]` or a list with a token; and so may that of a 405. */
  notFoundBody: [{ token: 'not_found_error', message: 'Not found' }],
  methodNotAllowedBody: [{ token: 'method_not_allowed_error', message: 'Not allowed' }],
  /** P31: a second object of the same name, of the kinds whose token nobody saw (virtual services, boundaries, dimensions …). */
  duplicateName: { token: 'name_must_be_unique', message: 'Name must be unique' },
  /** P31: the token of a second object with the same external_data_set and external_data_reference. */
  duplicateExternalDataToken: 'input_validation_error',
  /** P8: do filters on part of a text disregard its case? */
  filtersIgnoreCase: true,
  /** P8: `True` and `False` of clients whose language spells them so are flags too. */
  flagsIgnoreCase: true,
  /** P8: a query parameter that the kind does not have is ignored; false would refuse it. */
  ignoreUnknownParameters: true,
  /** P8: max_results above 500 is honoured, as live PCEs do, though documentation says otherwise. */
  largestPage: Infinity,
  /** P31: the token of a reserved label value, of a label key without a dimension (P14), of a second label of one key (P16). */
  refusedLabelToken: 'input_validation_error',
  /** P31: the token of deleting a label that only a rule names, or one that a kind uses whose token nobody saw. */
  labelInRule: { token: 'label_still_has_associated_rule_set', message: 'Label still has an associated rule set' },
  labelInUse: { token: 'input_validation_error', message: 'Label is still in use' },
  /** P31: the tokens of deleting what a rule, a boundary or another object uses; only those of IP lists and services were seen. */
  labelGroupInUse: { token: 'label_group_referenced', message: 'Label group is still in use' },
  virtualServiceInUse: { token: 'virtual_service_referenced', message: 'Virtual service is still in use' },
  virtualServerInUse: { token: 'virtual_server_referenced', message: 'Virtual server is still in use' },
  /** P23: a virtual service whose deletion is provisioned takes its bindings with it; false would leave them. */
  bindingsEndWithTheirService: true,
  /** P23: and so does a workload that is deleted or unpaired; false would leave bindings to a workload that is not listed. */
  bindingsEndWithTheirWorkload: true,
  /** P23: `status` of an item that a POST of service bindings made. */
  bindingStatus: 'created',
  /** P17, P18: what every PCE has can be used, not changed. */
  builtInObjectsAreFixed: true,
  /** P13: policy_check and allow without any parameter answer nothing found; with some of them missing, 406. */
  checkWithoutParameters: { sec_rules: [], deny_rules: [], override_deny_rules: [], status: 'ok' },
  /** P13: restore takes a version number alone; `draft`, `active`, an unknown number and pending changes are 406. */
  restoreStatus: 204,
  /** P13: provisioning nothing, or an object without a pending change. */
  nothingPendingStatus: 406,
  /** P13: dependencies, impact and delete take the bare list of hrefs that one client sends, as operation `commit`. */
  bareHrefListOperation: 'commit',
  /** P27: several providers or consumers of a rule search must all be found in a rule; `any` would take one of them. */
  ruleSearchActors: 'all',
  /** P27: the name of firewall settings in lists of changes. */
  firewallSettingsName: 'Firewall Settings',
  /** P48: with a 429, which is not documented. */
  sendRetryAfterWith429: true,
  /** P13: unpair and upgrade of VENs, remote_action and authentication_recovery answer 200 with `errors`; 204 is documented too. */
  venActionStatus: 200,
  /** P13: tokens of a VEN that is unknown or unpaired, that would be downgraded, that has no package in the release. */
  unknownVen: { token: 'not_found_error', message: 'Not found' },
  venDowngrade: { token: 'input_validation_error', message: 'VEN cannot be downgraded' },
  venWithoutImage: { token: 'input_validation_error', message: 'VEN platform is not supported by the release' },
  /** P13: the seconds that an upgrade waits for its VEN when it is not told; VENs here stay as they are. */
  venUpgradeTimeoutSeconds: 86_400,
  /** P13: how PUT software/ven/releases/defaults names the VEN types it is for. */
  venReleaseDefaultsTypes: 'ven_types',
  /** P13: DELETE of the default VEN release. */
  defaultReleaseDeletionStatus: 406,
  /** P9: `disconnected_before` compares the last heartbeat of VENs that are offline; false would compare those online too. */
  disconnectedMeansOffline: true,
  /** P13: workloads/unpair answers 204 without a body when all went well, 200 with `errors` otherwise. */
  workloadsUnpairedStatus: 204,
  /** P16: an unpaired workload stays readable with include_deleted, like a deleted unmanaged one; false would erase it. */
  unpairedWorkloadIsKept: true,
  /** P13: an interface given to, or taken from, a managed workload. */
  managedInterfaceStatus: 406,
  /** P13: `status` of a row that workloads/bulk_import took, and of one it did not. */
  importedRowStatus: 'updated',
  refusedRowStatus: 'validation_failure',
  /** P9: policy_health of a VEN's workload that nobody complained of and that is not suspended. */
  healthyPolicyHealth: 'active',
  /** P24: a container workload profile that is posted without `managed`; false would refuse its labels. */
  postedProfileIsManaged: true,
  /** P24: a label on an unmanaged profile (single source). */
  unmanagedProfileLabels: {
    token: 'unmanaged_container_workload_profile_labels',
    message: 'Labels cannot be assigned to an unmanaged container workload profile',
  },
  /** P70: may a label be deleted that a container profile only offers as a choice? False would refuse it. */
  restrictionLeavesLabelDeletable: true,
  /** P24: cluster_mode of a cluster that no Kubelink has joined yet. */
  newClusterMode: 'legacy',
  /** P12, P13, P38: a PUT to an id of the caller's choice that creates: 201 with the object, or 204 as any other PUT. */
  creatingPutStatus: 201 as 201 | 204,
  /** P13, P30: a result that has expired; 410 is known from one client's tests only. */
  expiredResultStatus: 404,
  /** P71: an `Accept` of any type, which is what many clients send, takes a download as JSON; false would give them CSV. */
  anyTypeMeansJson: true,
  /** P11: `update_rules` is answered with 202, or 204. */
  updateRulesStatus: 202,
  /** P13: `offset` and `limit` of `update_rules` choose the rows whose rules are worked out; one client sends them. */
  updateRulesHasWindow: true,
  /** P2: the token of a login can be exchanged again within its 30 seconds; false would spend it. */
  authTokenIsReusable: true,
  /** P2: an API key may be asked to live longer than the organisation's longest expiration; false would refuse it. */
  keyMayOutliveMaximum: true,
  /** P13: a login answers 200 or 201. */
  loginStatus: 200,
  /** P30: what a 501 says when a user was created but the invitation could not be sent. */
  invitationNotSent: { token: 'not_implemented_error', message: 'The invitation could not be sent' },
  /** P31: a second user of the same name. */
  takenUsername: { token: 'input_validation_error', message: 'The username is taken' },
} as const
