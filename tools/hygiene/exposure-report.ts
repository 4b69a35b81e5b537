import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { NamedServicesInput, type ServiceObject } from '../../schemas/rule-shapes.js'
import { SectionsInput } from '../../schemas/sections.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import type { ToolContext } from '../../domain/call.js'
import { resolveService, type ServiceReference } from '../../domain/drafts/resolve-services.js'
import { askablePorts, judgeExposure, REMEDIES } from '../../domain/hygiene/judge-exposure.js'
import { readExposure } from '../../domain/hygiene/read-exposure.js'
import { createPolicyLookups } from '../../domain/inventory/find-object.js'
import { loadLabels, type LabelIndex } from '../../domain/inventory/labels.js'
import { namePorts } from '../../domain/inventory/name-ports.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import type { Service } from '../../schemas/pce/service.js'
import { chooseSections } from '../answers/choose-sections.js'
import { EXPOSURE_PARTS, ExposureOutput, showExposure } from '../answers/hygiene/show-exposure.js'
import { defineTool } from '../define.js'

const DEFAULT_DAYS = 30

export default defineTool({
  name: 'exposure-report',
  summary: 'Ransomware and vulnerability exposure as the PCE has it, what of it is reached, and what would protect it.',
  effect: 'read',
  reads: 'everything',
  toolset: 'hygiene',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 60,
    and: 'two for each service given, those of further parts of the query, one for each rule set where the PCE keeps deny rules apart from it, and for long lists one more each',
  },
  input: Type.Object(
    {
      services: Type.Optional(NamedServicesInput('SMB, 445/tcp …, beside what the PCE rates')),
      would_protect: Type.Optional(
        StringEnum(REMEDIES, {
          description: 'Only destinations and reached that this would stop',
          listed: 'Only what this would stop',
        }),
      ),
      ...windowInput(DEFAULT_DAYS),
      ...CompleteInput,
      ...SectionsInput(EXPOSURE_PARTS),
      detail_level: DetailLevel('full: longer lists'),
    },
    { additionalProperties: false },
  ),
  output: ExposureOutput,
  example: { services: ['SMB', 'RDP'] },
  async handler(args, ctx): Promise<Static<typeof ExposureOutput>> {
    const { detail_level: detail = 'standard' } = args
    const { window } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const chosen = chooseSections(args.sections, EXPOSURE_PARTS)
    const labels = await loadLabels(ctx.pce, ctx)
    const named = await resolveNamed(ctx, labels, args.services ?? [])
    ctx.progress({ progress: 0, message: 'Reading what the PCE says about exposure' })
    const findings = await readExposure(ctx)
    const rated = findings.services ?? []
    const known = new Set(rated.map(({ href }) => href.split('/').at(-1)))
    const all = [...rated, ...named.filter(({ href }) => href === '' || !known.has(href.split('/').at(-1)))]
    const risky = all.map((service) => ({ service, ports: askablePorts(service) }))
    const asked = risky.flatMap(({ service, ports }) => (ports === null ? [] : [{ service, ports }]))
    const judged =
      asked.length === 0 ? null : await judgeExposure(ctx, labels, asked, { window, complete: args.complete })
    const portless = risky.flatMap(({ service, ports }) => (ports === null ? [service.name] : []))
    return showExposure({ findings, judged, portless, chosen, remedy: args.would_protect }, detail, ctx.limits)
  },
})

type Asked = ServiceReference | readonly ServiceReference[]

/** Looks up the services that a call names. Ports become a service of their own, without an href. */
async function resolveNamed(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  labels: LabelIndex,
  asked: Asked | readonly (string | ServiceObject)[],
): Promise<Service[]> {
  const lookups = createPolicyLookups(pce, labels, 'active', signal)
  const services: Service[] = []
  for (const one of (Array.isArray(asked) ? asked : [asked]) as ServiceReference[]) {
    const resolved = await resolveService(lookups, one, 'services')
    services.push(
      'service' in resolved
        ? resolved.service
        : { href: '', name: namePorts(resolved.ports), service_ports: [resolved.ports] },
    )
  }
  return services
}
