/** The cells of the matrix of scopes: each call with what has to come out of it, and how they are run on a service. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { GROUP_OF, registrationFor, startService, type Json } from '../contract/authenticated-service.js'
import type { Role } from '../../schemas/caller.js'
import { tools } from '../../tools/index.js'
import { CONTRACT } from '../surface/contract.js'
import { MARK } from './limited-estate.js'
import { ENTRIES, estate, GROUPS, prepare, type Entry, type Group, type Known } from './matrix.js'
import { isWrite } from './scoped-service.js'

/** Where what a call is about is, in relation to the scopes of `payments`. */
type Where = 'inside' | 'outside' | 'half' | 'unscoped'

/** Every tool that changes something. */
export const WRITING = tools.filter(({ effect }) => effect !== 'read').map(({ name }) => name)

/** Which error and which condition a call meets, the role first, then the scopes; null if it succeeds. */
function expect(tool: string, entry: Entry, role: Role, group: Group, [where, , rule]: Called) {
  if (!CONTRACT[tool]!.roles.includes(role)) return { error: 'forbidden', rule: undefined }
  if (group === 'core') return null
  if (group === 'strangers') return { error: 'out_of_scope', rule: 'no_scope' }
  if (where === 'inside') return null
  const told = group === 'limited' && entry.is === 'placed' ? entry.unseen?.[where === 'outside' ? 0 : 1] : undefined
  if (told === 'done') return null
  if (told === 'reads') return { error: 'out_of_scope', rule: told }
  if (told !== undefined) return { error: told, rule: undefined }
  if (where === 'unscoped')
    return entry.is === 'unscoped' && entry.creates === true && group === 'creating'
      ? null
      : { error: 'out_of_scope', rule: 'no_scope' }
  return { error: 'out_of_scope', rule }
}

/** A call: where its objects are, its arguments, and the condition that one outside does not meet. */
type Called = [Where, args: object, rule?: string]
const textOf = (value: unknown) => JSON.stringify(value)

/** The calls of a tool. */
function callsOf(entry: Exclude<Entry, { is: 'own' }>, known: Known): Called[] {
  if (entry.is === 'unscoped') return [['unscoped', entry.args(known)]]
  const half = typeof entry.half === 'string' ? undefined : entry.half(known)
  return [
    ['outside', entry.outside(known), entry.rule],
    ...(half === undefined ? [] : [['half', ...half] as Called]),
    // At the end, because it may delete what the others are about.
    ['inside', entry.inside(known)],
  ]
}

type Mode = 'shared' | 'per_user'

async function start(t: Test, mode: Mode) {
  const folder = mkdtempSync(join(tmpdir(), 'matrix-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const scopesPath = join(folder, 'scopes.json')
  writeFileSync(scopesPath, JSON.stringify({ groups: GROUPS }))
  const service = await startService(t, {
    mode,
    config: { scopesPath, offer: { toolsets: ['all'] } },
    estate: { estate: estate() },
    isSilent: true,
  })
  const { simulator } = service.pce
  const tokens = new Map<string, string>()
  async function tokenOf(group: Group | 'leaving', role: Role): Promise<string> {
    const sub = `${group} ${role}`
    const known = tokens.get(sub)
    if (known !== undefined) return known
    const token = await service.tokenOf(sub, role, { groups: [GROUP_OF[role], group] })
    if (mode === 'per_user') await service.call(token, 'register-pce-credentials', registrationFor(service.pce))
    tokens.set(sub, token)
    return token
  }
  async function call(token: string, tool: string, args: object): Promise<Json> {
    const answer: Json = await service.call(token, tool, args)
    // What would fail is not shown, so that there is nothing to confirm.
    if (answer.error !== 'confirm_required' || answer.confirm === undefined) return answer
    const { confirm_token: given } = (await service.confirm(token, answer.confirm.body)).json()
    return service.call(token, tool, args, { confirm_token: given })
  }
  const core = await tokenOf('core', 'admin')
  const known = await prepare(simulator, async (tool, args) => {
    const answer = await call(core, tool, args)
    if (answer.error !== undefined) throw new Error(`${tool}: ${JSON.stringify(answer)}`)
    return answer
  })
  return { simulator, tokenOf, call, sendCall: service.call, known }
}

/** Which cells are run: for these roles, dry runs alone or real calls, too. */
interface Chosen {
  roles: readonly Role[]
  dryRun: readonly boolean[]
  /** Also as dry runs of a caller whose reading is limited, whom no answer may name anything outside. */
  limited?: true
}

/** Runs the cells of every tool. Fails for a tool without an entry. */
export async function runMatrix(t: Test, mode: Mode, { roles, dryRun, limited }: Chosen): Promise<void> {
  const { simulator, tokenOf, call, sendCall, known } = await start(t, mode)
  for (const tool of WRITING) {
    const entry = ENTRIES[tool]
    if (entry === undefined) t.fail(`${tool} has no entry in test/scopes/matrix.ts`)
    if (entry === undefined || entry.is === 'own') continue
    for (const role of roles) {
      const calls = callsOf(entry, { ...known, tag: role === 'operator' ? role : 'admin' })
      const groups: Group[] = entry.is === 'unscoped' ? ['payments', 'creating'] : ['payments']
      if (limited) groups.unshift('limited')
      const cells = [
        // The same call is good but for the scopes.
        ['core', calls[0]!] as const,
        ['strangers', calls.at(-1)!] as const,
        ...calls.flatMap((called) => groups.map((group) => [group, called] as const)),
      ]
      for (const [group, called] of cells) {
        const [where, args] = called
        for (const isDry of group === 'core' || group === 'limited' ? [true] : dryRun) {
          const token = await tokenOf(group, role)
          simulator.clearRequests()
          const said = `${tool}, ${where}, ${group}, ${role}${isDry ? ', dry run' : ''}`
          const { error, message, ...answer }: Json = await call(token, tool, isDry ? { ...args, dry_run: true } : args)
          const refusal = expect(tool, entry, role, group, called)
          const wrote = simulator.requests.filter(isWrite).length > 0
          t.same(
            { error, rule: error === undefined ? undefined : answer.rule, wrote },
            { error: undefined, rule: undefined, ...refusal, wrote: refusal === null && !isDry },
            `${said}: ${message} ${error === undefined ? '' : textOf(answer.preview_error ?? '')}`,
          )
          if (group !== 'limited') continue
          t.same(answer.reads_limited_to, ['app=payments'], `${said} says that it is limited`)
          t.notMatch(unsaid([message, answer], args), MARK, `${said} names nothing outside`)
          if (refusal !== null || !CONTRACT[tool]!.requires_confirm) continue
          const asked: Json = await sendCall(token, tool, args)
          t.equal(asked.error, 'confirm_required', said)
          t.notMatch(textOf(asked), MARK, `${said}, as it is confirmed`)
        }
      }
    }
  }
}

/** The text of an answer without what its caller wrote, which an error may repeat. */
function unsaid(answer: unknown, args: unknown): string {
  const written = textOf(args).match(/"FOREIGN[^"]*"/g) ?? []
  return written.reduce((text, one) => text.replaceAll(one.slice(1, -1), ''), textOf(answer))
}
