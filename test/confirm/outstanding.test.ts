/** What the release before has signed, and what replicas that still run it sign, is understood: each kind as it was written by 0.2.0. */
import t from 'tap'
import { createApprovals } from '../../plugins/confirm/approvals.js'
import { keyOf } from '../../plugins/confirm/confirmed-call.js'
import { createRequestStates } from '../../plugins/confirm/request-states.js'
import { createTokens } from '../../plugins/confirm/tokens.js'
import type { ConfirmedCall } from '../../schemas/confirmations.js'
import type { ApprovalRow } from '../../schemas/state.js'
import { memoryState } from './memory-state.js'

const hmacKey = Buffer.alloc(32, 7)
const audience = 'https://mcp.example.test#state'
const now = () => Date.parse('2026-06-15T12:00:00Z')
const ID = 'i'.repeat(43)
const CALL: ConfirmedCall = {
  owner: { iss: 'https://id', sub: 'ann' },
  tool: 'provision-policy',
  paramsHash: 'a'.repeat(64),
  pce: 'https://pce org 1',
}

const CHALLENGE = 'a0361e1ae1b285df2ac16303afbc918fa1896b899d3814f1565f37e0d5d67997.1781524920000.shown'
const TOKEN =
  'eyJhbGciOiJIUzI1NiIsInR5cCI6ImNvbmZpcm0rand0Iiwia2lkIjoiOWQwZmViY2I1MmY3YWQwYiJ9.eyJ2IjoxLCJqdGkiOiJmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZiIsImlzcyI6Imh0dHBzOi8vaWQiLCJzdWIiOiJhbm4iLCJhdWQiOiJodHRwczovL21jcC5leGFtcGxlLnRlc3Qjc3RhdGUiLCJ0b29sIjoicHJvdmlzaW9uLXBvbGljeSIsInBhcmFtc19oYXNoIjoiYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYSIsInBjZSI6Imh0dHBzOi8vcGNlIG9yZyAxIiwiaWF0IjoxNzgxNTI0ODAwLCJleHAiOjE3ODE1MjQ5MjAsInNldCI6InNob3duIn0.sOGJ5wUrCJE1Ej-4-XOdkgpxwTXrfgB_0sVVtCVyefE'
const REQUEST =
  'c844b420096295bd1ef06120cb16d734d113a5382fab7c25671d9a4400691b1c.{"id":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii","owner":{"iss":"https://id","sub":"ann"},"tool":"provision-policy","paramsHash":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","pce":"https://pce org 1","requestId":"r","boundTo":"shown","shown":{"summary":"s","warnings":[],"objects":[],"objects_total":0},"askedAt":1781524800000,"expiresAt":1781525700000}'
const DECISION =
  '7f9b1824151392d9665d962da9d6d384aa47b8573b2ceb2ab198a9b329602e5c.{"verdict":"approved","by":{"iss":"https://id","sub":"ann","groups":["admins"],"hasGroupsOverage":false},"at":1781524800000}'
const STATE =
  'MjIyMWQ4NDM4ZmNkZjgyYzFmNzY2NWZkYjczNGE1ODljZmJiNTk4MjA2NjA4OTQ0YjgzMTkxYzBhNDE3YzNiYy57Im93bmVyIjp7ImlzcyI6Imh0dHBzOi8vaWQiLCJzdWIiOiJhbm4ifSwibWV0aG9kIjoidG9vbHMvY2FsbCIsIm5hbWUiOiJwcm92aXNpb24tcG9saWN5IiwicGFyYW1zSGFzaCI6ImFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWEiLCJyb3VuZCI6MCwiYXBwcm92YWxJZCI6ImlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWkiLCJub25jZSI6ImQzNTUwMDZhNDA3OGRhMjlmY2VlNmM4OWQ1ZjBhYWFlIiwidW50aWwiOjE3ODE1MjU3MDAwMDB9'

t.test('a confirm token, and the challenge that one is minted for', async (t) => {
  const { usedTokens, challenges } = memoryState(now)
  const config = { hmacKey, ttlSeconds: 120 }
  const get = () => Promise.resolve(CHALLENGE)
  const tokens = createTokens({ config, audience, usedTokens, challenges: { ...challenges, get }, now })
  const token = { jti: 'f'.repeat(32), expiresAt: now() + 120_000, boundTo: 'shown' }
  t.same(tokens.read(TOKEN, CALL), { state: 'signed', token })
  const { token: minted } = await tokens.mint(CALL)
  const [header, claims = ''] = minted.split('.')
  t.equal(header, TOKEN.split('.')[0])
  t.equal((JSON.parse(Buffer.from(claims, 'base64url').toString()) as { set: string }).set, 'shown')
})

t.test('a request that waits for a person, and a decision', async (t) => {
  const row: ApprovalRow = {
    id: ID,
    key: keyOf(CALL),
    request: REQUEST,
    decision: DECISION,
    firstDecision: null,
    ending: null,
    expiresAt: now() + 900_000,
  }
  const service = createApprovals({
    config: { hmacKey, ttlSeconds: 120, approval: { method: 'page', ttlSeconds: 900, maxAgeSeconds: 0 } },
    audience,
    rows: { get: () => Promise.resolve(row) } as never,
    roleOf: () => 'admin',
    tools: [],
    audit: () => Promise.resolve(),
    log: { error: () => {} },
    mode: 'shared',
    publicUrl: 'https://mcp.example.test',
    now,
  })
  t.teardown(() => service.close())
  const found = await service.desk.find(ID)
  t.equal(found?.state, 'approved')
  t.equal(found?.request.boundTo, 'shown')
  t.equal(found?.decision?.by.sub, 'ann')
})

t.test('what a client brings back with its answer', async (t) => {
  const states = createRequestStates({ keys: { hmacKey }, audience, usedTokens: memoryState(now).usedTokens, now })
  const facts = { owner: CALL.owner, method: 'tools/call', name: CALL.tool, paramsHash: CALL.paramsHash }
  t.same(await states.open(STATE, facts), { ...facts, round: 0, approvalId: ID })
})
