import { Type, type Static } from '@sinclair/typebox'
import { loadLabels } from '../../domain/inventory/labels.js'
import { createTrafficDecider } from '../../domain/policy/decide-traffic.js'
import { nearNames } from '../../domain/text/compare-texts.js'
import { trimBlanks } from '../../domain/text/escape-text.js'
import { workInTurns } from '../../domain/text/pace-work.js'
import { ACCOUNT_TYPES } from '../../domain/traffic/classify-account.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { parseAccount } from '../../domain/traffic/parse-account.js'
import { accountsOf, findAccountReach, type Reach } from '../../domain/traffic/reach-of-accounts.js'
import { createFlowReader } from '../../domain/traffic/read-flows.js'
import { resolveTrafficFilters } from '../../domain/traffic/resolve-filters.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { CompleteInput, trafficInput } from '../../schemas/traffic-input.js'
import { AccountReachOutput, showAccountReach, type PersonShown } from '../answers/explain/show-account-reach.js'
import { defineTool } from '../define.js'

const DEFAULT_DAYS = 7
const DEFAULT_PEOPLE = 10
const { include_sources, include_destinations } = trafficInput('As in get-traffic-flows')

export default defineTool({
  name: 'identity-reach',
  summary: 'What accounts reach, by the users of observed flows: of one, or the widest.',
  effect: 'read',
  reads: 'judged',
  toolset: 'explain',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 40,
    and: 'those of further parts of the query, one for each rule set where the PCE keeps deny rules apart from it, and for long lists one more each',
  },
  input: Type.Object(
    {
      account: Type.Optional(
        Type.String({
          description: 'DOMAIN\\user, user@realm or user, whole; default: the widest',
          listed: 'DOMAIN\\user …; default: the widest',
        }),
      ),
      type: Type.Optional(StringEnum(ACCOUNT_TYPES, { description: 'Only these', listed: '' })),
      ...windowInput(DEFAULT_DAYS),
      include_sources,
      include_destinations,
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 500, default: DEFAULT_PEOPLE, description: 'Accounts shown' }),
      ),
      detail_level: DetailLevel('full: more that fits'),
      ...CompleteInput,
    },
    { additionalProperties: false },
  ),
  output: AccountReachOutput,
  example: { lookback_days: 30, type: 'interactive', include_sources: ['env=prod'] },
  async handler(args, ctx): Promise<Static<typeof AccountReachOutput>> {
    const { type, limit = DEFAULT_PEOPLE, detail_level: detail = 'standard' } = args
    const { window } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const account = args.account === undefined ? undefined : trimBlanks(args.account)
    if (account === '')
      throw new ToolError('invalid_argument', 'account is empty; leave it out for the widest.', { argument: 'account' })
    const filters = await resolveTrafficFilters(ctx.pce, args, ctx)
    const labels = await loadLabels(ctx.pce, ctx)
    const encoder = createFlowEncoder(labels)
    const decider = await createTrafficDecider(ctx, { encoder, labels }, 'active', undefined)
    const finder = findAccountReach(encoder)
    const read = await createFlowReader(
      ctx,
      encoder,
      args.complete,
    )({ name: 'mcp-identity-reach', window, filters, ...decider.request }, (row) => finder.add(row))
    const reach = await workInTurns(finder.finish(), ctx.signal)
    const named = account === undefined ? reach.people : peopleNamed(reach.people, account)
    const people = named.filter((one) => type === undefined || one.class.type === type)
    const first = people.slice(0, limit)
    const destinations = await workInTurns(reach.destinationsOf(first), ctx.signal)
    const shown = first.map((one, at): PersonShown => ({ reach: one, destinations: destinations[at] ?? [] }))
    const all = () => reach.people.flatMap(({ person }) => accountsOf(person).map(({ text }) => text))
    return showAccountReach(
      {
        reach,
        people,
        shown,
        account,
        nearNames: account !== undefined && named.length === 0 ? nearNames(account, all()) : [],
        decided: decider.result(),
        // Rows that the destination reported are not in any sum, so no connection is counted twice.
        read: { ...read, repeatedConnections: 0 },
      },
      detail,
      ctx.limits,
    )
  },
})

/**
 * Returns the people who have exactly this account. If nobody has it and it is written without a realm, returns the
 * people with this user name in any realm.
 */
function peopleNamed(people: readonly Reach[], text: string): Reach[] {
  const { id, form, name } = parseAccount(text)
  const exact = people.filter(({ person }) => accountsOf(person).some((account) => account.id === id))
  if (exact.length > 0 || form !== 'bare') return exact
  return people.filter(({ person }) => person.main.name === name)
}
