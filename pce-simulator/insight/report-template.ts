import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidInput, invalidUri } from '../refusal.js'
import { CLOSED, Shape } from '../validate/shape.js'
import { UNCERTAIN } from '../uncertain.js'
import { orgPath, type World } from '../world.js'
import { REPORT_TEMPLATES } from './data/report-templates.js'

const UPDATE = new Shape('report_templates_put', Type.Object({ enabled: Type.Optional(Type.Boolean()) }, CLOSED))

/** Built-in report templates; the last part of the href is the template's type (P12). */
export const reportTemplate: PlainKind = {
  segment: 'report_templates',
  noun: 'report_template',
  ids: 'uuid',
  store: (world) => world.store('report_templates'),
  filters: {},
  change: (_world, _current, body) => UPDATE.read(body),
  render: (_world, object) => object,
}

export function seedReportTemplates(world: World): void {
  for (const { type, name, report_parameters } of REPORT_TEMPLATES) {
    const href = orgPath(world, `/report_templates/${type}`)
    world.store('report_templates').set({ href, name, enabled: true, show_in_ui: true, report_parameters })
  }
}

/** The template a report or schedule names; 406 when there is none or it is switched off. */
export function requireTemplate(world: World, href: string): PceObject {
  const template = world.store('report_templates').get(href)
  if (!template) throw invalidUri(href)
  if (template.enabled !== true && UNCERTAIN.refuseDisabledTemplates)
    throw invalidInput(`The report template ${String(template.name)} is not enabled`)
  return template
}

/** `{href, name}`, as reports and schedules show theirs. */
export function describeTemplate(world: World, reference: unknown): { href: string; name: unknown } {
  const { href } = reference as { href: string }
  return { href, name: world.store('report_templates').get(href)?.name }
}
