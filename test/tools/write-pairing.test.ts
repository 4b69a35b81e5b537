/** Pairing profiles and keys as they are written: at once, with keys that expire, and no key anywhere but in the answer. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startConfirming } from '../confirm/harness.js'
import { startService } from '../contract/authenticated-service.js'
import { handMade } from './hand-made.js'
import { NOW, startBench } from './harness.js'

const AT = '/orgs/1/pairing_profiles'
const KEY = /^[0-9a-f]{64}$/u

t.test('a pairing profile enforces nothing and has keys of a day, unless said otherwise', async (t) => {
  const bench = await startBench(t)
  const asked = { name: 'Web', labels: ['role=web'], allowed_uses_per_key: 5 }
  const plan = await bench.ok('create-pairing-profile', { ...asked, dry_run: true })
  t.same(bench.writes(), [])
  const {
    requests: _requests,
    policy: { applying, ...policy },
    ...preview
  } = plan
  t.equal(applying.length, 5, 'the first of the ten rules')
  t.same(
    { ...preview, policy },
    {
      dry_run: true,
      message: 'Would create the pairing profile "Web".',
      name: 'Web',
      enabled: true,
      enforcement_mode: 'visibility_only',
      key_lifespan: 86_400,
      allowed_uses_per_key: 5,
      labels: ['role=web'],
      left_to_pce: [
        'enforcement_mode_lock: whether it fixes their enforcement mode',
        'visibility_level: how much of their traffic they report',
        'visibility_level_lock: whether it fixes that',
        'role_label_lock: whether it fixes their role label',
        'app_label_lock: whether it fixes their app label',
        'env_label_lock: whether it fixes their env label',
        'loc_label_lock: whether it fixes their loc label',
      ],
      warnings: [
        'It gives no label of app, env: a machine that pairs with it is without them until somebody adds them.',
        'No rule set in force has a scope with these labels.',
      ],
      policy: { rule_sets: 0, named: [], rule_sets_for_all: 3, rules: { allow: 10 }, rules_undecided: 1 },
    },
  )
  const { href, ...created } = await bench.ok('create-pairing-profile', asked)
  t.same(plan.requests, [{ method: 'POST', path: AT, body: bench.writes()[0]!.body }])
  t.same(created, {
    message: 'Created the pairing profile "Web". It has no key yet.',
    name: 'Web',
    enabled: true,
    is_default: false,
    enforcement_mode: 'visibility_only',
    enforcement_mode_lock: true,
    labels: ['role=web'],
    key_lifespan: 86_400,
    allowed_uses_per_key: 5,
    total_use_count: 0,
    last_pairing_at: null,
    last_pairing_key_generated_at: null,
  })
  const full = await bench.ok('create-pairing-profile', {
    name: 'Strict',
    enforcement_mode: 'full',
    key_lifespan: 'unlimited',
    dry_run: true,
  })
  t.same(full.warnings, [
    'It gives no label of app, env, role: a machine that pairs with it is without them until somebody adds them.',
    'No rule set in force has a scope with these labels.',
    'Machines that pair with it enforce policy from the start: traffic that no rule allows is blocked.',
    'Its keys never expire: whoever has one can pair machines. create-pairing-key refuses such a profile.',
    'allowed_uses_per_key is not given, so the PCE chooses it: a key may pair any number of machines.',
  ])
  const changed = await bench.ok('update-pairing-profile', { name: 'Web', key_lifespan: 60, labels: [] })
  t.same([changed.updated_fields, changed.key_lifespan, changed.labels], [['key_lifespan', 'labels'], 60, []])
  const deleted = await bench.ok('delete-pairing-profile', { name: 'Web' })
  t.same([deleted.message, deleted.href, deleted.total_use_count], ['Deleted the pairing profile "Web".', href, 0])
})

t.test('a dry run says which policy a new machine joins, and what it would be without', async (t) => {
  const estate = handMade({
    hosts: { web: { ip: '10.0.0.1', labels: 'app=pay env=prod role=web' } },
    labels: ['app=new', 'loc=moon'],
    ruleSets: [
      {
        name: 'Pay',
        scope: 'app=pay env=prod',
        allow: [
          { from: 'ams', to: 'role=web' },
          { from: 'ams', to: 'role=db' },
          { from: 'host:web', to: 'role=db' },
        ],
        deny: [{ from: 'any', to: 'role=web' }],
      },
      { name: 'Other', scope: 'app=crm', allow: [{ from: 'ams', to: 'ams' }] },
      { name: 'All', scope: '', allow: [{ from: 'role=jump', to: 'env=prod' }] },
    ],
  })
  const bench = await startBench(t, { estate })
  const ask = async (args: object) => {
    const { policy, warnings } = await bench.ok('create-pairing-profile', {
      name: 'New',
      allowed_uses_per_key: 1,
      dry_run: true,
      ...args,
    })
    return { policy, warnings }
  }
  t.same(await ask({ labels: ['app=pay', 'env=prod', 'role=web'] }), {
    policy: {
      rule_sets: 1,
      named: ['Pay'],
      rule_sets_for_all: 1,
      rules: { allow: 3, deny: 1 },
      applying: [
        ['allow', 'Pay', '1/sec_rules/1', 'all workloads to role=web, All Services'],
        ['allow', 'Pay', '1/sec_rules/2', 'all workloads to role=db, All Services'],
        ['deny', 'Pay', '1/deny_rules/4', 'Any (0.0.0.0/0 and ::/0) to role=web, All Services'],
        ['allow', 'All', '3/sec_rules/6', 'role=jump to env=prod, All Services'],
      ].map(([rule_type, rule_set, href, rule]) => ({
        rule_type,
        rule_set,
        href: `/orgs/1/sec_policy/draft/rule_sets/${href}`,
        rule,
      })),
    },
    warnings: undefined,
  })
  const nothing = { rule_sets: 0, named: [], rule_sets_for_all: 1, rules: {}, applying: [] }
  t.same(await ask({ labels: ['app=new', 'role=web', 'loc=moon'], enforcement_mode: 'full' }), {
    policy: nothing,
    warnings: [
      'It gives no label of env: a machine that pairs with it is without it until somebody adds it.',
      'No rule set in force has a scope with these labels.',
      'No rule in force applies to a machine with these labels: its traffic would be blocked.',
      'Machines that pair with it enforce policy from the start: traffic that no rule allows is blocked.',
    ],
  })
  bench.simulator.faults.add({ kind: 'status', path: '/orgs/1/sec_policy/active/rule_sets', times: 9, status: 403 })
  const blind = await ask({ labels: ['app=pay', 'env=prod', 'role=web'] })
  t.equal(blind.policy, undefined)
  t.match(blind.warnings[0], /^Which policy a machine with these labels joins is not known: /)
  t.same(bench.writes(), [])
})

t.test('what cannot be a pairing profile, or be done to it, is refused before anything is written', async (t) => {
  const bench = await startBench(t)
  const fails = async (tool: string, args: object, code: string) =>
    (await bench.fails(tool, args, code)).message as string
  for (const limit of [0, -1, 2_147_483_648, 'never', '1h'])
    t.equal(
      await fails('create-pairing-profile', { name: 'New', key_lifespan: limit }, 'invalid_argument'),
      `key_lifespan: "${limit}" is neither a whole number from 1 to 2147483647 nor "unlimited".`,
    )
  await bench.fails('create-pairing-profile', { name: 'New', labels: ['role=wb'] }, 'label_not_found')
  await bench.fails('create-pairing-profile', { name: 'Default (Servers)' }, 'already_exists')
  await bench.fails('update-pairing-profile', { name: 'Default (Servers)' }, 'no_update_fields')
  t.equal(
    await fails('delete-pairing-profile', { name: 'Default (Servers)' }, 'invalid_argument'),
    'The pairing profile "Default (Servers)" is the default one, which a PCE keeps. Nothing was written.',
  )
  t.same(bench.writes(), [])
})

t.test('a key is made only where it works and expires, and says when', async (t) => {
  const bench = await startBench(t)
  const never = await bench.fails('create-pairing-key', { name: 'Default (Servers)' }, 'invalid_argument')
  t.same(
    [never.message, never.reason],
    ['Keys of the pairing profile "Default (Servers)" never expire, so none is made.', 'never_expires'],
  )
  await bench.ok('create-pairing-profile', { name: 'Web', labels: ['role=web'], key_lifespan: 3600 })
  await bench.ok('create-pairing-profile', { name: 'Off', enabled: false })
  t.equal((await bench.fails('create-pairing-key', { name: 'Off' }, 'invalid_argument')).reason, 'disabled')
  await bench.ok('update-pairing-profile', { name: 'Off', enabled: true })
  await bench.ok('create-pairing-key', { name: 'Off' })
  await bench.ok('update-pairing-profile', { name: 'Default (Servers)', key_lifespan: 86_400 })
  await bench.ok('create-pairing-key', { name: 'Default (Servers)' })
  bench.writes()
  const dry = await bench.ok('create-pairing-key', { name: 'Web', dry_run: true })
  t.same(
    [dry.message, dry.pairing_key],
    ['Would make a key of the pairing profile "Web", which expires after 3600 seconds.', undefined],
  )
  t.same(bench.writes(), [])
  const made = await bench.ok('create-pairing-key', { name: 'Web' })
  t.ok(KEY.test(made.pairing_key as string), 'a key')
  t.equal(made.expires_at, new Date(NOW + 3_600_000).toISOString())
  const { href: _href, ...profile } = made.pairing_profile
  t.same(profile, {
    name: 'Web',
    enforcement_mode: 'visibility_only',
    labels: ['role=web'],
    key_lifespan: 3600,
    allowed_uses_per_key: 'unlimited',
  })
  t.equal(bench.writes().length, 1)
  const { warnings } = await bench.ok('update-pairing-profile', { name: 'Web', key_lifespan: 60, dry_run: true })
  t.match(warnings[0], /^Its latest key was made on 20.*, so machines may pair with one of its keys at any time\.$/u)
  t.equal(warnings[1], 'Whether new limits hold for keys that were made before is not documented.')
  bench.writes()
  const ended = await bench.ok('delete-pairing-keys', { name: 'Web' })
  t.equal(ended.message, 'Ended all keys of the pairing profile "Web". New ones can be made.')
  t.same(
    bench.writes().map(({ method, path }) => [method, path.replace(/^.*\/orgs/u, '/orgs')]),
    [['DELETE', `${made.pairing_profile.href}/pairing_keys`]],
  )
})

t.test('a key whose answer is lost: nobody has it, and the error says how to end it', async (t) => {
  const bench = await startBench(t)
  await bench.ok('create-pairing-profile', { name: 'Web', key_lifespan: 3600 })
  bench.writes()
  for (const kind of ['commit-then-drop', 'truncate'] as const) {
    bench.simulator.faults.add({ kind, path: /pairing_key$/, method: 'POST', times: 1 })
    const lost = await bench.fails('create-pairing-key', { name: 'Web' }, 'outcome_unknown')
    t.equal(
      lost.hint,
      'A key may exist that nobody has. It ends after 3600 seconds; delete-pairing-keys ends all keys of the profile at once.',
    )
    t.notMatch(JSON.stringify(lost), /[0-9a-f]{16}/u, 'no part of the key is in the error')
    t.equal(bench.writes().length, 1, 'it is not sent again')
  }
})

t.test('keys whose end is not answered: it is asked for again, and is not said to be done', async (t) => {
  const bench = await startBench(t)
  const { href } = await bench.ok('create-pairing-profile', { name: 'Web' })
  await bench.ok('create-pairing-key', { name: 'Web' })
  bench.writes()
  const faults = { path: /pairing_keys$/, method: 'DELETE' } as const
  bench.simulator.faults.add({ kind: 'commit-then-drop', ...faults, times: 1 })
  const done = await bench.ok('delete-pairing-keys', { name: 'Web' })
  t.equal(done.message, 'Ended all keys of the pairing profile "Web". New ones can be made.')
  const path = `/api/v2${href}/pairing_keys`
  t.same(
    bench.writes().map((one) => [one.method, one.path, one.status]),
    [
      ['DELETE', path, null],
      ['DELETE', path, 204],
    ],
    'it is sent again',
  )
  bench.simulator.faults.add({ kind: 'commit-then-drop', ...faults, times: 20 })
  await bench.fails('delete-pairing-keys', { name: 'Web' }, 'outcome_unknown')
  bench.simulator.faults.clear()
  bench.simulator.faults.add({ kind: 'status', status: 406, ...faults, times: 1 })
  await bench.fails('delete-pairing-keys', { name: 'Web' }, 'pce_error')
  await bench.ok('delete-pairing-keys', { name: 'Web' })
})

t.test('the key is in the answer, and in no log, audit entry, confirmation or file', async (t) => {
  const folder = t.testdir()
  const service = await startService(t, { mode: 'shared', folder, config: { offer: { toolsets: ['all'] } } })
  const [ann, olga] = [await service.tokenOf('ann'), await service.tokenOf('olga', 'operator')]
  const made = await service.call(ann, 'create-pairing-profile', { name: 'Web', key_lifespan: 3600 })
  t.equal(made.message, 'Created the pairing profile "Web". It has no key yet.')
  const args = { name: 'Web' }
  t.equal((await service.call(olga, 'create-pairing-key', args)).error, 'forbidden')
  const asked = await service.call(ann, 'create-pairing-key', args)
  t.equal(asked.error, 'confirm_required')
  const { simulator } = service.pce
  const keysMade = () =>
    simulator.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/pairing_key')).length
  t.equal(keysMade(), 0, 'there is no key before the confirmation')
  const minted = (
    await service.confirm(ann, { tool: 'create-pairing-key', params_hash: asked.params_hash })
  ).json() as { confirm_token: string }
  const answer = await service.call(ann, 'create-pairing-key', args, { confirm_token: minted.confirm_token })
  const key = answer.pairing_key as string
  t.ok(KEY.test(key), 'a key')
  t.equal(keysMade(), 1)
  const { events } = await service.call(ann, 'get-events', {})
  t.ok(events.length > 0, 'the PCE has events')
  await service.app.close()
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file))
  const stored = files.map((file) => readFileSync(file).toString('latin1'))
  t.ok(service.audit.length > 4 && service.log.length > 4 && stored.length > 0, 'all of it was looked at')
  for (const [where, text] of Object.entries({
    audit: JSON.stringify(service.audit),
    log: JSON.stringify(service.log),
    files: stored.join(''),
    simulator: JSON.stringify(simulator.requests),
    events: JSON.stringify(events),
  }))
    t.notOk(text.includes(key), where)
})

t.test('a changed profile makes the confirmation stale', async (t) => {
  const bench = await startConfirming(t)
  await bench.call('create-pairing-profile', { name: 'Web', key_lifespan: 3600 })
  const args = { name: 'Web' }
  const token = await bench.tokenFor('create-pairing-key', args)
  const [profile] = (await bench.pce.pairingProfiles.getAll()).filter(({ name }) => name === 'Web')
  await bench.pce.pairingProfiles.update(profile!.href, { enforcement_mode: 'full' })
  t.equal((await bench.call('create-pairing-key', args, { token })).reason, 'stale')
})
