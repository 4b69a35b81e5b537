import { Type, type Static } from '@sinclair/typebox'
import type { PceClient } from '../../pce-client/index.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { WorkloadCreated } from '../../schemas/workload-created.js'
import { defineTool, type ToolContext } from '../define.js'
import { checkAddresses } from '../support/check-addresses.js'
import { cleanDeep } from '../support/clean-text.js'
import { findDifferences, listDifferences } from '../support/compare-stored.js'
import { ensureLabel, showLabel, type LabelOutput } from '../support/create-label.js'
import { fetchEvery } from '../support/fetch-slice.js'
import { loadLabels } from '../support/load-labels.js'
import { planWorkloadLabels, toRequests } from '../support/plan-workload-labels.js'
import { refuseHidden } from '../support/refuse-hidden.js'
import { writeWithRollback } from '../support/write-with-rollback.js'

/** A label to find or to create. */
const LabelObject = Type.Object(
  {
    key: Type.Optional(Type.String({ description: 'Key' })),
    value: Type.Optional(Type.String({ description: 'Value' })),
    href: Type.Optional(Type.String({ description: 'Or href' })),
  },
  { additionalProperties: false },
)

export default defineTool({
  name: 'create-workload',
  area: 'workloads',
  summary:
    'Create an unmanaged workload (a host without agent) with its addresses and labels. Labels that do not exist are created. Acts at once.',
  effect: 'write',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: NewName('Name, also the host name'),
      ip_addresses: Type.Array(Type.String({ maxLength: 45 }), {
        minItems: 1,
        maxItems: 100,
        description: 'IPv4 or IPv6; one interface each',
      }),
      labels: Type.Optional(
        Type.Array(Type.Union([Type.String({ maxLength: 1024 }), LabelObject]), {
          maxItems: 50,
          description: '{key, value}, "key=value" or href; one per key',
        }),
      ),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output: WorkloadCreated,
  example: { name: 'legacy-db-01', ip_addresses: ['10.200.0.15'], labels: [{ key: 'app', value: 'payments' }] },
  async handler(
    { name, ip_addresses: addresses, labels = [], dry_run: dryRun },
    ctx,
  ): Promise<Static<typeof WorkloadCreated>> {
    refuseHidden({ name })
    checkAddresses(addresses)
    const plan = planWorkloadLabels(await loadLabels(ctx.pce, ctx, 'fresh'), labels)
    const warnings = [...(await warnOfNamesakes(ctx, name)), ...plan.warnings]
    const interfaces = addresses.map((address, index) => ({ name: `eth${index}`, address }))
    const toBody = (hrefs: string[]) => ({ name, hostname: name, interfaces, labels: hrefs.map((href) => ({ href })) })
    const shownWarnings = warnings.length > 0 ? { warnings } : {}
    if (dryRun === true) {
      const requests = toRequests(ctx.pce.orgId, plan, toBody)
      return { dry_run: true, message: `Would create the workload ${name}.`, requests, ...shownWarnings }
    }

    const created: LabelOutput[] = []
    const attached: Label[] = []
    const { workload, body } = await writeWithRollback(ctx.pce, {
      describe: () => ({ labels_created: created }),
      write: async (written) => {
        for (const entry of plan.entries) {
          if ('existing' in entry) {
            attached.push(entry.existing)
            continue
          }
          const { label, created: isOurs } = await ensureLabel(ctx.pce, entry.missing.key, entry.missing.value, ctx)
          attached.push(label)
          if (!isOurs) continue
          written.hrefs.push(label.href)
          created.push(showLabel(label))
        }
        const body = toBody(attached.map(({ href }) => href))
        return { body, workload: await ctx.pce.workloads.create(body) }
      },
    })
    const stored = await readBack(ctx.pce, workload, warnings)
    const nameOf = (href: string) => attached.find((label) => label.href === href)
    return {
      message: `Created the unmanaged workload ${name}.`,
      workload: cleanDeep({
        href: stored.href,
        name: stored.name ?? '',
        hostname: stored.hostname ?? '',
        interfaces: (stored.interfaces ?? []).map((entry) => ({ name: entry.name, address: entry.address ?? '' })),
        labels: (stored.labels ?? [])
          .map((label) => ({ key: '', value: '', ...nameOf(label.href), ...label }))
          .map(showLabel),
      }),
      labels_created: created,
      ...listDifferences(cleanDeep(findDifferences(body, stored))),
      ...(warnings.length > 0 && { warnings }),
    }
  },
})

/** The PCE lets several workloads bear one name, which makes every later lookup by name ambiguous. */
async function warnOfNamesakes({ pce, signal }: ToolContext<true>, name: string): Promise<string[]> {
  const { items } = await fetchEvery({ api: pce.workloads, params: { name }, signal })
  const hrefs = items.filter((workload) => workload.name === name).map(({ href }) => href)
  return hrefs.length === 0
    ? []
    : [`The PCE permits it, but the name ${name} is taken already by ${hrefs.slice(0, 5).join(', ')}.`]
}

/** The workload is created by now; not being able to look at it again is worth a warning and no failure. */
async function readBack(pce: PceClient, created: Workload, warnings: string[]): Promise<Workload> {
  try {
    return await pce.workloads.getByReference(created.href)
  } catch {
    warnings.push('The workload was created, but could not be read back to check what was stored.')
    return created
  }
}
