import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { MODE_CHANGE_DAYS } from '../../domain/readiness/judge-mode-change.js'
import { windowInput } from '../../domain/traffic/traffic-window.js'
import { boundTo, carryOut, preview, requestsOf, venChoiceInput, type VenCall } from '../answers/vens/carry-out.js'
import { VenActionOutput } from '../answers/vens/show-ven-action.js'
import { defineTool } from '../define.js'

/**
 * Maximum number of VENs in one call. The PCE would accept 1,000, but the query for the traffic that is lost lists them
 * all.
 */
const MOST_VENS = 100

const input = Type.Object(
  {
    ...venChoiceInput(MOST_VENS),
    firewall_restore: StringEnum(['saved', 'default', 'disable'] as const, {
      description: "The host's firewall then: as before pairing, as the PCE recommends, or all open",
    }),
    lookback_days: windowInput(MODE_CHANGE_DAYS).lookback_days,
  },
  { additionalProperties: false },
)

const callOf = ({ firewall_restore: firewall, ...args }: Static<typeof input>): VenCall => ({
  action: { kind: 'unpair', firewall },
  args,
  most: MOST_VENS,
})

export default defineTool({
  name: 'unpair-vens',
  summary: 'Unpair VENs for good, and judge what is no longer enforced there and at their peers.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'vens-plus',
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  pceRequests: {
    atMost: 14,
    and: 'two for each VEN and up to three for each name, and in a preview or a dry run what preview-enforcement-change sends',
  },
  input,
  output: VenActionOutput,
  example: { workloads: ['payments-db-1'], firewall_restore: 'saved', dry_run: true },
  boundTo: (args, ctx) => boundTo(ctx, callOf(args)),
  preview: (args, ctx) => preview(ctx, callOf(args)),
  plan: (args, ctx) => requestsOf(ctx, callOf(args)),
  handler: (args, ctx) => carryOut(ctx, callOf(args)),
})
