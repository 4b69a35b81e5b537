import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

const POLICY = '/orgs/1/sec_policy'
const DRAFT = `${POLICY}/draft`

/** Provisioning and what surrounds it (P4, P13, P27). */
export async function policyOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, simulator, ask } = pce
  let names = 0
  const made = async (path: string, body: object) => (await ask<{ href: string }>('POST', path, body)).href
  const ipList = () =>
    made(`${DRAFT}/ip_lists`, { name: `Operation ${++names}`, ip_ranges: [{ from_ip: '192.0.2.1' }] })
  /** A new rule set with one rule that needs `list`. */
  const ruleSet = async (list: string) => {
    const href = await made(`${DRAFT}/rule_sets`, { name: `Operation ${++names}`, scopes: [[]] })
    const rule = await made(`${href}/sec_rules`, {
      enabled: true,
      providers: [{ actors: 'ams' }],
      consumers: [{ ip_list: { href: list } }],
      ingress_services: [{ port: 4711, proto: 6 }],
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    })
    return { href, rule }
  }
  const provision = (subset: Json) => ask<Json>('POST', POLICY, { update_description: 'x', change_subset: subset })
  const settle = () => ask('DELETE', `${POLICY}/pending`)
  const find = (href: string) => simulator.state.find(href)
  const forbidden = async (t: Test, method: string, path: string, attempt: () => Promise<unknown>) => {
    pce.refuseNext(method, path, 403, 'forbidden_error')
    await pce.refused(t, attempt, { status: 403, method, path, token: 'forbidden_error' }, 'forbidden')
  }

  await proveOperation(t, pce, 'provision_policy_changes', async (t) => {
    const [one, other] = [await ipList(), await ipList()]
    const { href, rule } = await ruleSet(one)
    const before = simulator.state.policyVersion
    const active = one.replace('/draft/', '/active/')
    const version = await client.provisionPolicyChanges('Said why', [active, rule])
    pce.wire(
      t,
      {
        method: 'POST',
        path: POLICY,
        body: { update_description: 'Said why', change_subset: { ip_lists: [{ href: one }], rule_sets: [{ href }] } },
        status: 201,
      },
      'draft hrefs by kind: an active href is converted, a rule stands for its rule set',
    )
    partial(t, version, { version: before + 1, commit_message: 'Said why', href: `${POLICY}/${before + 1}` })
    partial(t, version.object_counts, { ip_lists: Number, rule_sets: Number })
    checkResult(t, 'provision_policy_changes', version)
    t.ok(find(active), 'they are active now')
    partial(t, find(href.replace('/draft/', '/active/')), { rules: [{ enabled: true }] })
    t.strictSame(simulator.state.pendingHrefs(), [other], 'and nothing else is')
    for (const bad of ['/orgs/1/labels/1', '/orgs/2/sec_policy/draft/ip_lists/1', 'ip_lists/1', '']) {
      const attempt = () => client.provisionPolicyChanges('x', [bad])
      await pce.refusedHere(t, attempt, 'invalid_href', `the href ${JSON.stringify(bad)}`)
    }
    const needed = await ruleSet(other)
    const attempt = () => client.provisionPolicyChanges('x', [needed.href])
    await pce.refused(t, attempt, { status: 406, method: 'POST', path: POLICY }, 'a subset that is not closed')
    await settle()
  })

  await proveOperation(t, pce, 'get_pending_policy_changes', async (t) => {
    const path = `${POLICY}/pending`
    t.strictSame(await client.getPendingPolicyChanges(), [], 'nothing is pending')
    const list = await ipList()
    const { href } = await ruleSet(list)
    const pending = await client.getPendingPolicyChanges()
    pce.wire(t, { method: 'GET', path }, 'the list')
    t.same(
      pending.map((change: Json) => [change.type, change.href, change.update_type]).sort(),
      [
        ['ip_lists', list, 'create'],
        ['rule_sets', href, 'create'],
      ],
      'one list with the kind of every object',
    )
    checkResult(t, 'get_pending_policy_changes', pending)
    await client.getPendingPolicyChanges({ params: { max_results: 1 } })
    pce.wire(t, { method: 'GET', path, query: { max_results: '1' } }, 'with a limit of each kind')
    await forbidden(t, 'GET', path, () => client.getPendingPolicyChanges())
    await settle()
  })

  await proveOperation(t, pce, 'discard_pending_policy_changes', async (t) => {
    const path = `${POLICY}/pending`
    const [gone, kept] = [await ipList(), await ipList()]
    await provision({ ip_lists: [{ href: kept }] })
    await ask('PUT', kept, { description: 'Changed' })
    t.equal(await client.discardPendingPolicyChanges(), undefined)
    pce.wire(t, { method: 'DELETE', path, status: 204 }, 'all of it')
    t.strictSame(simulator.state.pendingHrefs(), [], 'nothing is pending any more')
    t.equal(find(gone), undefined, 'what was new is gone')
    t.not(find(kept)?.description, 'Changed', 'what was changed is as before')
    await forbidden(t, 'DELETE', path, () => client.discardPendingPolicyChanges())
  })

  await proveOperation(t, pce, 'get_policy_dependencies', async (t) => {
    const path = `${DRAFT}/dependencies`
    const list = await ipList()
    const { href } = await ruleSet(list)
    const change_subset = { rule_sets: [{ href }] }
    const dependencies = await client.getPolicyDependencies([href])
    pce.wire(t, { method: 'POST', path, body: { operation: 'commit', change_subset } }, 'the documented body')
    partial(t, dependencies, [{ dependency: { ip_lists: { href: list } }, required_by: { rule_sets: [{ href }] } }])
    checkResult(t, 'get_policy_dependencies', dependencies)
    t.strictSame(await client.getPolicyDependencies([href, list]), [], 'a closed set needs nothing')
    await forbidden(t, 'POST', path, () => client.getPolicyDependencies([href]))
    await settle()
  })

  await proveOperation(t, pce, 'get_modified_policy_objects', async (t) => {
    const list = await ipList()
    const objects = await client.getModifiedPolicyObjects()
    pce.wire(t, { method: 'GET', path: `${DRAFT}/modified_objects` }, 'of the draft')
    partial(
      t,
      objects.find((object: Json) => object.href === list),
      { update_type: 'create', object_type: 'ip_lists' },
    )
    checkResult(t, 'get_modified_policy_objects', objects)
    const { version } = await provision({ ip_lists: [{ href: list }] })
    const then = await client.getModifiedPolicyObjects(version as number)
    pce.wire(t, { method: 'GET', path: `${POLICY}/${version as number}/modified_objects` }, 'of a version')
    t.equal(then.length, 1, 'what that provisioning changed')
    partial(t, then[0], { update_type: 'create', object_type: 'ip_lists' })
    await forbidden(t, 'GET', `${DRAFT}/modified_objects`, () => client.getModifiedPolicyObjects())
  })

  const [source, destination] = await ask<{ href: string }[]>('GET', '/orgs/1/workloads?managed=true')
  const list = await ipList()
  const open = await made(`${DRAFT}/rule_sets`, { name: 'Operation open', scopes: [[]] })
  const openRule = await made(`${open}/sec_rules`, {
    enabled: true,
    description: 'Found by its words',
    providers: [{ actors: 'ams' }],
    consumers: [{ actors: 'ams' }],
    ingress_services: [{ port: 4712, proto: 6 }],
    resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  })
  await provision({ rule_sets: [{ href: open }], ip_lists: [{ href: list }] })
  const params = { src_workload: source?.href, dst_workload: destination?.href, port: 4712, protocol: 6 }
  const query = { ...params, port: '4712', protocol: '6' } as Record<string, string>
  const activeRule = openRule.replace('/draft/', '/active/')

  await proveOperation(t, pce, 'check_policy', async (t) => {
    const path = `${DRAFT}/policy_check`
    const check = await client.checkPolicy('draft', { params })
    pce.wire(t, { method: 'GET', path, query }, 'with who, whom and what')
    const rules = check.sec_rules as Json[]
    t.ok(
      rules.some(({ href }) => href === openRule),
      'the rule that allows it',
    )
    partial(t, rules[0]?.rule_set, { href: String }, 'with its rule set')
    t.ok(Array.isArray(check.deny_rules) && Array.isArray(check.override_deny_rules))
    checkResult(t, 'check_policy', check)
    await client.checkPolicy('active', { params })
    pce.wire(t, { method: 'GET', path: `${POLICY}/active/policy_check`, query }, 'of the active policy')
    simulator.faults.add({ kind: 'status', path, times: 1, status: 200, body: {} })
    const empty = { sec_rules: [], deny_rules: [], override_deny_rules: [] }
    t.strictSame(await client.checkPolicy('draft', { params }), empty, 'lists that a release leaves out are empty')
    await forbidden(t, 'GET', path, () => client.checkPolicy('draft', { params }))
  })

  await proveOperation(t, pce, 'get_policy_allow', async (t) => {
    const path = `${POLICY}/active/allow`
    const rules = (await client.getPolicyAllow('active', { params })) as unknown as Json[]
    pce.wire(t, { method: 'GET', path, query }, 'with who, whom and what')
    t.ok(
      rules.some(({ href }) => href === activeRule),
      'the rule that allows it',
    )
    checkResult(t, 'get_policy_allow', rules)
    await client.getPolicyAllow(undefined, { params })
    pce.wire(t, { method: 'GET', path, query }, 'of the active policy by default')
    await forbidden(t, 'GET', path, () => client.getPolicyAllow('active', { params }))
  })

  await proveOperation(t, pce, 'analyze_policy_impact', async (t) => {
    const path = `${POLICY}/impact`
    await ask('PUT', open, { description: 'A change' })
    const impact = await client.analyzePolicyImpact([open])
    pce.wire(t, { method: 'POST', path, body: { change_subset: { rule_sets: [{ href: open }] } } }, 'a change subset')
    t.ok((impact.num_managed_workloads ?? 0) > 0, 'it concerns every workload')
    checkResult(t, 'analyze_policy_impact', impact)
    await forbidden(t, 'POST', path, () => client.analyzePolicyImpact([open]))
    await settle()
  })

  await proveOperation(t, pce, 'restore_policy', async (t) => {
    const before = simulator.state.policyVersion
    const newer = await ipList()
    await provision({ ip_lists: [{ href: newer }] })
    const result = await client.restorePolicy(before)
    pce.wire(
      t,
      { method: 'POST', path: `${POLICY}/${before}/restore`, body: {}, status: [200, 201, 204] },
      'of a version, with an empty object',
    )
    t.type(result, 'object', 'a result, whatever the PCE says')
    checkResult(t, 'restore_policy', result)
    partial(t, find(newer), { update_type: 'delete' }, 'the draft goes back to that version')
    const path = `${POLICY}/${before}/restore`
    const attempt = () => client.restorePolicy(before)
    await pce.refused(t, attempt, { status: 406, method: 'POST', path }, 'while changes are pending')
    await settle()
  })

  await proveOperation(t, pce, 'bulk_delete_policy_objects', async (t) => {
    const path = `${POLICY}/delete`
    const [reverted, kept] = [await ipList(), await ipList()]
    t.equal(await client.bulkDeletePolicyObjects([reverted]), undefined)
    const body = { change_subset: { ip_lists: [{ href: reverted }] } }
    pce.wire(t, { method: 'PUT', path, body, status: 204 }, 'a change subset')
    t.equal(find(reverted), undefined, 'the pending creation is taken back')
    t.strictSame(simulator.state.pendingHrefs(), [kept], 'and no other')
    const { href } = await ruleSet(kept)
    const attempt = () => client.bulkDeletePolicyObjects([kept])
    await pce.refused(t, attempt, { status: 406, method: 'PUT', path }, 'a set that is not closed')
    t.ok(find(href))
    await settle()
  })

  await proveOperation(t, pce, 'search_rules', async (t) => {
    const path = `${DRAFT}/rule_search`
    const criteria = { description: 'Found by its words', rule_types: ['sec_rules' as const] }
    const rules = await client.searchRules(criteria)
    pce.wire(t, { method: 'POST', path, body: criteria }, 'the criteria')
    t.same(
      rules.map(({ href }: Json) => href),
      [openRule],
      'one list of rules',
    )
    partial(t, rules[0]?.rule_set, { href: open })
    checkResult(t, 'search_rules', rules)
    const active = await client.searchRules(criteria, 'active')
    pce.wire(t, { method: 'POST', path: `${POLICY}/active/rule_search`, body: criteria }, 'of the active policy')
    t.same(
      active.map(({ href }: Json) => href),
      [activeRule],
    )
    const bare = [{ href: openRule }]
    simulator.faults.add({ kind: 'status', path, times: 1, status: 200, body: bare })
    partial(t, await client.searchRules(criteria), bare, 'older releases answer a bare list')
    const facts = { status: 406, method: 'POST', path, token: 'input_validation_error' }
    await pce.refused(t, () => client.searchRules({ colour: 'red' }), facts, 'a bad criterion')
  })
}
