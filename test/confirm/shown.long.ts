/** A confirmed call does what its preview showed, or nothing: for a ringfence-batch, the window of its traffic and every write. */
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Conversation } from '../../pce-simulator/model.js'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate, type HandMadeFlow } from '../tools/hand-made.js'
import type { Json } from '../tools/harness.js'
import { startConfirming } from './harness.js'

const BATCH = 'ringfence-batch'
const ESTATE = {
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'shop-1': { ip: '10.0.0.2', labels: 'app=shop env=prod' },
    'crm-1': { ip: '10.0.0.3', labels: 'app=crm env=prod' },
  },
} satisfies HandMadeEstate
const args = { apps: ['pay', 'shop'].map((app) => ({ app_name: app, env_name: 'prod', selective: true })) }
const hashOf = (call: object) => createHash('sha256').update(JSON.stringify(call)).digest('hex')

/** The service before an estate whose traffic goes on: `happen` adds to what the PCE has seen. */
async function start(t: Test) {
  const seen: HandMadeFlow[] = [{ from: 'shop-1', to: 'pay-1', connections: 5 }]
  const estate = handMade({ ...ESTATE, flows: seen })
  const conversations = [...estate.conversations] as Conversation[]
  const bench = await startConfirming(t, { estate: { ...estate, conversations } })
  const happen = (flow: HandMadeFlow) =>
    void conversations.push(...handMade({ ...ESTATE, flows: [flow] }).conversations)
  const stale = async (token: string, call: object = args): Promise<Json> => {
    bench.writes()
    const answer = await bench.call(BATCH, call, { token })
    partial(t, answer, { error: 'confirm_required', reason: 'stale', params_hash: hashOf(call), summary: String })
    t.same(bench.writes(), [], 'nothing was written')
    return answer
  }
  return { bench, happen, stale }
}

t.test('a ringfence-batch that nobody was shown does not run, though /confirm issues a token for it', async (t) => {
  const { bench, stale } = await start(t)
  for (const call of [args, { ...args, dry_run: true }]) {
    const minted = await bench.mint(BATCH, hashOf(call))
    partial(t, minted, { confirm_token: String, expires_in: 120 })
    await stale(minted.confirm_token, call)
  }
})

t.test('what would be written differently is stale; what moves by itself is not', async (t) => {
  const { bench, happen, stale } = await start(t)

  const moved = await bench.tokenFor(BATCH, { ...args, dry_run: true })
  const first = await bench.tokenFor(BATCH, args)
  happen({ from: 'crm-1', to: 'pay-1', connections: 3 })
  const answer = await stale(first)
  t.match(
    answer.summary,
    /^Writes 2 new rule sets and 6 rules/,
    'the new source has a rule now, and the answer shows it',
  )
  partial(
    t,
    await bench.call(BATCH, { ...args, dry_run: true }, { token: moved }),
    { ok: true },
    'a dry run writes nothing',
  )

  const { confirm_token: second } = await bench.confirm(answer)
  happen({ from: 'shop-1', to: 'pay-1', connections: 500 })
  bench.writes()
  const done = await bench.call(BATCH, args, { token: second })
  partial(t, done, { ok: true, summary: { successful: 2, rulesets_created: 2, rules_created: 6 } }, 'counts move')
  t.equal(bench.writes().length, 8)
  partial(t, await bench.call(BATCH, args, { token: second }), { error: 'confirm_token_replay' })
})

t.test('another window of traffic is another question', async (t) => {
  const { bench, stale } = await start(t)
  const midnight = new Date(bench.clock.now).setUTCHours(24, 0, 0, 0)
  bench.clock.now = midnight - 10_000
  const token = await bench.tokenFor(BATCH, args)
  bench.clock.now = midnight
  await stale(token)
})

t.test('so is a source that would be left out, though nothing is written for it', async (t) => {
  const { bench, happen, stale } = await start(t)
  const call = { ...args, exclude_sources: ['app=crm'] }
  const first = await bench.tokenFor(BATCH, call)
  happen({ from: 'crm-1', to: 'pay-1', connections: 3 })
  const answer = await stale(first, call)
  t.match(
    answer.summary,
    /^Writes 2 new rule sets and 5 rules .* Left out, without a rule: "crm \(prod\)" to "pay \(prod\)"\./,
  )
  const { confirm_token: second } = await bench.confirm(answer)
  partial(t, await bench.call(BATCH, call, { token: second }), { ok: true, summary: { rules_created: 5 } })
})

t.test('so is a rule set that has come to exist', async (t) => {
  const { bench, stale } = await start(t)
  const token = await bench.tokenFor(BATCH, args)
  const labels = await Promise.all(
    [
      ['app', 'shop'],
      ['env', 'prod'],
    ].map(async ([key, value]) => (await bench.pce.labels.get('draft', null, { params: { key, value } }))[0]!.href),
  )
  await bench.pce.ruleSets.create({
    name: 'RF-shop-prod',
    scopes: [labels.map((href) => ({ label: { href } }))],
  })
  await stale(token)
})

t.test('writes exactly what was shown, though the traffic changes after the last check', async (t) => {
  const { bench, happen } = await start(t)
  const planOf = (app: object) => bench.call('create-ringfence', { ...app, dry_run: true, detail_level: 'full' })
  const shown = (await Promise.all(args.apps.map(planOf))).flatMap(({ requests }: Json) => requests)

  let inTheGap = () => {}
  const slow = await startConfirming(t, {
    after: bench,
    ports: ({ usedTokens, challenges }) => ({
      challenges,
      usedTokens: {
        ...usedTokens,
        async claim(id, expiresAt) {
          const isFirst = await usedTokens.claim(id, expiresAt)
          inTheGap()
          return isFirst
        },
      },
    }),
  })
  const token = await slow.tokenFor(BATCH, args)
  inTheGap = () => happen({ from: 'crm-1', to: 'shop-1', connections: 2 })
  slow.writes()
  partial(t, await slow.call(BATCH, args, { token }), {
    error: 'confirm_required',
    reason: 'stale',
    params_hash: hashOf(args),
    message: /Nothing was written/,
  })
  t.same(slow.writes(), [], 'a source that nobody was shown gets no rule, and no ringfence without one')
  partial(t, await slow.call(BATCH, args, { token }), { error: 'confirm_token_replay' })

  inTheGap = () => happen({ from: 'shop-1', to: 'pay-1', connections: 2 })
  const again = await slow.tokenFor(BATCH, args)
  slow.writes()
  partial(t, await slow.call(BATCH, args, { token: again }), { ok: true, summary: { successful: 2, errors: 0 } })
  const sent = slow.writes().map(({ method, body }) => ({ method, body }))
  const crm = sent.find(({ body }) => JSON.stringify(body).includes('Inbound from crm'))
  t.ok(crm, 'the second question showed the new source')
  t.same(
    sent.filter((one) => one !== crm),
    shown.map(({ method, body }: Json) => ({ method, body })),
    'all else is what the first one showed',
  )
})
