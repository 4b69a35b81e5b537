/** What a client brings back with its answer is what it was given, for the same call of the same caller, once (D148). */
import t from 'tap'
import { createRequestStates } from '../../plugins/confirm/request-states.js'
import { memoryState } from '../confirm/memory-state.js'
import { found } from '../edge/support/within.js'

const facts = {
  owner: { iss: 'https://idp.example', sub: 'ann' },
  method: 'tools/call',
  name: 'provision-policy',
  paramsHash: 'a'.repeat(64),
}
const state = { ...facts, round: 1, boundTo: 'b'.repeat(64), approvalId: 'c' }

function start(key = 7) {
  const clock = { now: Date.now() }
  const { usedTokens } = memoryState(() => clock.now)
  const make = (audience = 'one', hmacKey = Buffer.alloc(32, key), previousHmacKey?: Buffer) =>
    createRequestStates({
      keys: { hmacKey, ...(previousHmacKey && { previousHmacKey }) },
      audience,
      usedTokens,
      now: () => clock.now,
    })
  return { clock, make }
}

t.test('once, in any process with the same key and state', async (t) => {
  const { make } = start()
  const sealed = make().seal(state)
  const both = await Promise.all([make().open(sealed, facts), make().open(sealed, facts)])
  t.same(
    both.filter((one) => one !== null),
    [state],
  )
  t.equal(await make().open(sealed, facts), null)
  t.not(make().seal(state), make().seal(state))
})

t.test('by the call that the store knows first, also if that call hears of it last', async (t) => {
  const answers: ((isFirst: boolean) => void)[] = []
  const usedTokens = { claim: () => new Promise<boolean>((resolve) => answers.push(resolve)) }
  const states = createRequestStates({ audience: 'one', usedTokens, now: () => Date.now() })
  const sealed = states.seal(state)
  const [first, second] = [states.open(sealed, facts), states.open(sealed, facts)]
  await found(() => answers.length === 2, 'both have claimed it')
  answers[1]!(false)
  t.equal(await second, null)
  answers[0]!(true)
  t.same(await first, state)
})

t.test('for nothing and nobody else', async (t) => {
  const { make } = start()
  const others = [
    { ...facts, owner: { ...facts.owner, sub: 'bob' } },
    { ...facts, owner: { ...facts.owner, iss: 'https://other.example' } },
    { ...facts, owner: null },
    { ...facts, method: 'prompts/get' },
    { ...facts, name: 'ringfence-batch' },
    { ...facts, paramsHash: 'b'.repeat(64) },
  ]
  const sealed = make().seal(state)
  for (const other of others) t.equal(await make().open(sealed, other), null)
  t.same(await make().open(sealed, facts), state, 'none of that has used it')
  const nobody = { ...facts, owner: null }
  t.same(await make().open(make().seal({ ...nobody, round: 0 }), nobody), { ...nobody, round: 0 })
})

t.test('for 15 minutes', async (t) => {
  const { make, clock } = start()
  const [one, other] = [make().seal(state), make().seal(state)]
  clock.now += 15 * 60_000 - 1
  t.same(await make().open(one, facts), state)
  clock.now += 1
  t.equal(await make().open(other, facts), null)
})

t.test('as it was sealed, with a key of ours, for this state', async (t) => {
  const { make } = start()
  const sealed = make().seal(state)
  const text = Buffer.from(sealed, 'base64url').toString()
  const again = (changed: string) => Buffer.from(changed).toString('base64url')
  for (const bad of [
    '',
    'x',
    '!',
    sealed.slice(0, -2),
    `${sealed}=`,
    `${sealed} `,
    again(text.replace('"round":1', '"round":0')),
    again('{}'),
    'A'.repeat(9000),
  ])
    t.equal(await make().open(bad, facts), null, bad.slice(0, 40))
  t.equal(await make('another').open(sealed, facts), null)
  t.equal(await make('one', Buffer.alloc(32, 8)).open(sealed, facts), null)
  t.same(await make('one', Buffer.alloc(32, 8), Buffer.alloc(32, 7)).open(sealed, facts), state, 'a key of before')
})

t.test('without keys and a store, in this process alone', async (t) => {
  const now = () => Date.now()
  const states = createRequestStates({ audience: 'stdio', now })
  const sealed = states.seal(state)
  t.equal(await createRequestStates({ audience: 'stdio', now }).open(sealed, facts), null)
  t.same(await states.open(sealed, facts), state)
  t.equal(await states.open(sealed, facts), null)
})
