/**
 * The simulator's choices where no source settles the PCE's behaviour. The choice is always the mildest documented
 * behaviour. Every entry begins with the number of its fact in docs/pce-facts.md, and is the only place in the
 * simulator where this choice is made.
 */
export const UNCERTAIN = {
  /** P4: the status of a second DELETE of an object that is already pending deletion. */
  secondDeletionStatus: 204,
  /**
   * P33: rules and boundaries should refer to other objects by draft hrefs; here, active hrefs from clients are
   * accepted too.
   */
  draftsTakeActiveReferences: true,
  /** P4: a write to an active path is refused, but it is not documented whether with 405 or with 406. */
  activeWriteStatus: 405,
  /** P30: the body of a 404 or 405, which may be empty, `[]`, or a list with a token. */
  notFoundBody: [{ token: 'not_found_error', message: 'Not found' }],
  methodNotAllowedBody: [{ token: 'method_not_allowed_error', message: 'Not allowed' }],
  /**
   * P31: the error for a second object with the same name, for kinds whose error token nobody has observed (virtual
   * services, boundaries, dimensions …).
   */
  duplicateName: { token: 'name_must_be_unique', message: 'Name must be unique' },
  /** P31: the error token for a second object with the same external_data_set and external_data_reference. */
  duplicateExternalDataToken: 'input_validation_error',
  /** P51: If true, deny rules reach a source in selective mode. */
  denyRulesReachSelectiveSources: true,
  /** P8: If true, filters that match a part of a field ignore case. */
  filtersIgnoreCase: true,
  /** P8: If true, flags may be written `True` and `False`, as clients in some languages do. */
  flagsIgnoreCase: true,
  /** P8: If true, unknown query parameters are ignored; if false, they would be refused. */
  ignoreUnknownParameters: true,
  /** P8: the maximum of max_results. Live PCEs accept more than 500, although the documentation says otherwise. */
  largestPage: Infinity,
  /**
   * P31: the error token for a reserved label value, for a label key without a dimension (P14), and for a second label
   * of the same key (P16).
   */
  refusedLabelToken: 'input_validation_error',
  /**
   * P31: two error tokens: the one for deleting a label that only a rule uses, and the one for deleting a label that
   * other objects use, which nobody has observed.
   */
  labelInRule: { token: 'label_still_has_associated_rule_set', message: 'Label still has an associated rule set' },
  labelInUse: { token: 'input_validation_error', message: 'Label is still in use' },
  /**
   * P31: the error tokens for deleting an object that a rule, a boundary or another object uses. Only the tokens for IP
   * lists and services have been observed.
   */
  labelGroupInUse: { token: 'label_group_referenced', message: 'Label group is still in use' },
  virtualServiceInUse: { token: 'virtual_service_referenced', message: 'Virtual service is still in use' },
  virtualServerInUse: { token: 'virtual_server_referenced', message: 'Virtual server is still in use' },
  /** P23: If true, provisioning the deletion of a virtual service removes its bindings. */
  bindingsEndWithTheirService: true,
  /**
   * P23: If true, deleting or unpairing a workload removes its bindings; if false, bindings would remain for a workload
   * that is no longer listed.
   */
  bindingsEndWithTheirWorkload: true,
  /** P23: the `status` of a service binding that a POST created. */
  bindingStatus: 'created',
  /** P17, P18: If true, built-in objects are read-only. */
  builtInObjectsAreFixed: true,
  /**
   * P13: the answer of policy_check without any parameters: no rules found. If only some parameters are missing, the
   * answer is 406.
   */
  checkWithoutParameters: { sec_rules: [], deny_rules: [], override_deny_rules: [], status: 'ok' },
  /**
   * P13: the status of a successful restore. Only the number of a version is accepted; `draft`, `active`, an unknown
   * number and pending changes are refused with 406.
   */
  restoreStatus: 204,
  /** P13: the status of the answer if nothing, or an object without a pending change, is to be provisioned. */
  nothingPendingStatus: 406,
  /**
   * P13: the operation that is assumed if a client sends only a list of hrefs to `dependencies`, `impact` or `delete`.
   */
  bareHrefListOperation: 'commit',
  /**
   * P27: whether a rule search with several providers or consumers requires all of them in a rule, or `any` of them.
   */
  ruleSearchActors: 'all',
  /** P27: the name of firewall settings in lists of changes. */
  firewallSettingsName: 'Firewall Settings',
  /** P48: If true, a 429 has a Retry-After header, which is not documented. */
  sendRetryAfterWith429: true,
  /**
   * P13: the status of actions on VENs (unpair, upgrade, remote_action, authentication_recovery), whose answers contain
   * `errors`; 204 is documented too.
   */
  venActionStatus: 200,
  /**
   * P13: the errors for a VEN that is unknown or unpaired, that would be downgraded, or whose package is not in the
   * release.
   */
  unknownVen: { token: 'not_found_error', message: 'Not found' },
  venDowngrade: { token: 'input_validation_error', message: 'VEN cannot be downgraded' },
  venWithoutImage: { token: 'input_validation_error', message: 'VEN platform is not supported by the release' },
  /** P13: the default number of seconds that an upgrade waits for its VEN. Simulated VENs never upgrade. */
  venUpgradeTimeoutSeconds: 86_400,
  /** P13: the field that contains the VEN types in the body of PUT software/ven/releases/defaults. */
  venReleaseDefaultsTypes: 'ven_types',
  /** P13: the status for a DELETE of the default VEN release. */
  defaultReleaseDeletionStatus: 406,
  /**
   * P9: If true, `disconnected_before` finds only VENs that are offline; if false, the last heartbeat of online VENs
   * would be compared too.
   */
  disconnectedMeansOffline: true,
  /**
   * P13: the status of workloads/unpair if nothing failed (without a body). If something failed, it answers 200 with
   * `errors`.
   */
  workloadsUnpairedStatus: 204,
  /**
   * P16: If true, an unpaired workload can still be read with include_deleted, like a deleted unmanaged one; if false,
   * it would be erased.
   */
  unpairedWorkloadIsKept: true,
  /** P126: If true, a workload that is not idle has no compatibility report (404); if false, it would have its last one. */
  reportOnlyOfIdle: true,
  /** P13: the status for adding an interface to a managed workload, or removing one. */
  managedInterfaceStatus: 406,
  /** P13: the `status` of a successful and of a failed row of workloads/bulk_import. */
  importedRowStatus: 'updated',
  refusedRowStatus: 'validation_failure',
  /** P9: the policy_health of a managed workload that has no health problems and is not suspended. */
  healthyPolicyHealth: 'active',
  /**
   * P24: If true, a container workload profile that is created without the field `managed` is managed; if false, its
   * labels would be refused.
   */
  postedProfileIsManaged: true,
  /** P24: the error for a label on an unmanaged profile (only one source reports it). */
  unmanagedProfileLabels: {
    token: 'unmanaged_container_workload_profile_labels',
    message: 'Labels cannot be assigned to an unmanaged container workload profile',
  },
  /** P70: If true, a label can be deleted although a container workload profile offers it as a choice. */
  restrictionLeavesLabelDeletable: true,
  /** P24: the cluster_mode of a cluster that no Kubelink has joined yet. */
  newClusterMode: 'legacy',
  /**
   * P12, P13, P38: the status of a PUT that creates an object under an id the caller chose: 201 with the object, or 204
   * as for any other PUT.
   */
  creatingPutStatus: 201 as 201 | 204,
  /** P13, P30: the status for a result that has expired. 410 only occurs in one client's tests. */
  expiredResultStatus: 404,
  /**
   * P71: If true, an `Accept` of any type, which many clients send, gets a download as JSON; if false, it would get
   * CSV.
   */
  anyTypeMeansJson: true,
  /** P11: the status of the answer to `update_rules`: 202 or 204. */
  updateRulesStatus: 202,
  /**
   * P13: If true, `offset` and `limit` of `update_rules` choose the rows whose rules are computed. One client sends
   * these parameters.
   */
  updateRulesHasWindow: true,
  /**
   * P2: If true, the token of a login can be exchanged again within its 30 seconds; if false, only one exchange would
   * be possible.
   */
  authTokenIsReusable: true,
  /**
   * P2: If true, an API key may be requested for longer than the organisation's maximum; if false, it would be refused.
   */
  keyMayOutliveMaximum: true,
  /** P13: the status of the answer to a login: 200 or 201. */
  loginStatus: 200,
  /** P30: the error of a 501, when a user was created but the invitation could not be sent. */
  invitationNotSent: { token: 'not_implemented_error', message: 'The invitation could not be sent' },
  /** P31: the error for a second user of the same name. */
  takenUsername: { token: 'input_validation_error', message: 'The username is taken' },
} as const
