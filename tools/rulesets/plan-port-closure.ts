import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { MAX_PAGE, usualSize } from '../../schemas/paging.js'
import { ActorsInput, NamedServicesInput } from '../../schemas/rule-shapes.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { prepareClosure, writeClosure } from '../../domain/ringfence/prepare-closure.js'
import { requireApproved } from '../../domain/policy/require-approved.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { bindAnswer } from '../answers/approval/preview-dry-run.js'
import { ClosureOutput, showClosure, SHOWN_ROWS } from '../answers/ringfence/show-closure.js'
import { defineTool } from '../define.js'

const DEFAULT_DAYS = 30

export default defineTool({
  name: 'plan-port-closure',
  summary: 'Close services everywhere but where used or excepted.',
  effect: 'write',
  scope: 'everything',
  toolset: 'rules-plus',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  pceRequests: {
    atMost: 90,
    and: 'two for each service and one for each end of an exception that is named, two for each rule, those of further parts of the query, two for each rule set where the PCE keeps deny rules apart from it, for a confirmed call one for each object that the rules name, and for long lists one more each',
  },
  input: Type.Object(
    {
      services: NamedServicesInput('To close: SMB, 445/tcp …'),
      exceptions: Type.Optional(
        Type.Array(
          Type.Object(
            {
              consumers: ActorsInput('Who keeps it', { listed: '' }),
              providers: Type.Optional(ActorsInput('Where; default ams', { listed: '' })),
            },
            { additionalProperties: false },
          ),
          { maxItems: 50, description: 'Who may use it all the same', listed: '' },
        ),
      ),
      keep_used: Type.Optional(
        Type.Boolean({
          default: true,
          description: 'Applications that use it keep it; false: only exceptions',
          listed: '',
        }),
      ),
      max_results: usualSize(
        Type.Integer({ minimum: 1, maximum: MAX_PAGE, description: 'Rows of a list', listed: '' }),
        SHOWN_ROWS,
      ),
      ruleset_name: Type.Optional(NewName('Default Close <services>', { listed: '' })),
      ...windowInput(DEFAULT_DAYS),
      ...CompleteInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output: ClosureOutput,
  example: { services: ['SMB'], dry_run: true },
  async handler(args, ctx): Promise<Static<typeof ClosureOutput>> {
    const { ruleset_name: name, keep_used: keepUsed = true, exceptions = [] } = args
    if (name !== undefined) refuseHidden({ ruleset_name: name })
    const { window } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const planning = { ...ctx, signal: ctx.beforeWriting }
    const asked = { services: args.services, exceptions, keepUsed, name, window, complete: args.complete }
    const prepared = await prepareClosure(planning, asked)
    if (args.dry_run === true) return showClosure(ctx, prepared, null, args.max_results)
    if (ctx.approved !== undefined) {
      // Reading traffic takes minutes, so the plan may meanwhile differ from the confirmed one.
      const limits = { ...ctx.limits, responseBudgetBytes: Infinity }
      const { digest } = await bindAnswer(showClosure({ ...ctx, limits }, prepared, null, args.max_results), planning)
      const text = 'What the closure would write has changed since it was confirmed. Nothing was written.'
      requireApproved(ctx.approved, digest, text)
    }
    ctx.beforeWriting.throwIfAborted()
    return showClosure(ctx, prepared, await writeClosure(ctx, prepared), args.max_results)
  },
})
