import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { Change } from '../store/event-log.js'
import { label as labelKind } from '../kinds/label.js'
import { changePlain, createPlain } from '../kinds/plain-kind.js'
import { renderLabels } from '../kinds/render-labels.js'
import { workload as workloadKind } from '../kinds/workload.js'
import type { World } from '../world.js'
import type { Assignment, LabelMappingRule } from './label-mapping-rule.js'
import { compileExpression } from './match-expression.js'

/** One label a run found for a workload; without an href it is made when it is assigned. */
export interface LabelToAssign {
  href?: string
  key: string
  value: string
  label_mapping_rule: Reference
}

/** One workload for which a run found labels. */
export interface MappedWorkload {
  href: string
  hostname: string | null
  existing_labels: { href: string; key: unknown; value: unknown }[]
  labels_to_assign: LabelToAssign[]
}

/**
 * What the rules, in their order, make of the workloads: per label key the first rule that applies decides, and a label the
 * workload has is replaced only by a rule that overwrites. Workloads nothing is found for are left out.
 */
export function mapLabels(
  world: World,
  workloads: readonly PceObject[],
  rules: readonly LabelMappingRule[],
): MappedWorkload[] {
  const compiled = rules.map((rule) => ({
    rule,
    applies: compileExpression(rule.expression),
    labels: rule.label_assignments.flatMap((assignment) => resolve(world, assignment) ?? []),
  }))
  return workloads.flatMap((workload) => {
    const existing = renderLabels(world, workload.labels)
    const decided = new Map<string, LabelToAssign | null>()
    for (const { rule, applies, labels } of compiled) {
      const open = labels.filter(({ key }) => !decided.has(key))
      if (open.length === 0 || !applies(workload as Workload)) continue
      for (const label of open) {
        const has = existing.find(({ key }) => key === label.key)
        if (has && !rule.overwrite) continue
        decided.set(
          label.key,
          has?.value === label.value ? null : { ...label, label_mapping_rule: { href: rule.href } },
        )
      }
    }
    const found = [...decided.values()].filter((label) => label !== null)
    if (found.length === 0) return []
    return {
      href: workload.href,
      hostname: textOf(workload.hostname),
      existing_labels: existing,
      labels_to_assign: found,
    }
  })
}

/** Gives the workloads that still exist the labels a run found for them, in place of the labels of the same keys. */
export function assignLabels(world: World, results: readonly MappedWorkload[]): Change[] {
  const changes: Change[] = []
  for (const { href, labels_to_assign } of results) {
    const workload = world.workloads.get(href)
    if (!workload || workload.deleted === true) continue
    const assigned = labels_to_assign.flatMap((label) => {
      const found = findLabel(world, label)
      if (found) return [{ ...label, href: found }]
      // A label that was deleted since the run is not brought back.
      if (label.href !== undefined) return []
      const made = createPlain(
        labelKind,
        labelKind.build!(world, { key: label.key, value: label.value }, NO_CALL),
        world,
      )
      changes.push(...made.changes)
      return [{ ...label, href: (made.json as unknown as PceObject).href }]
    })
    const keys = new Set(assigned.map(({ key }) => key))
    const kept = renderLabels(world, workload.labels).filter(({ key }) => !keys.has(String(key)))
    const labels = [...kept, ...assigned].map((label) => ({ href: label.href }))
    if (assigned.length > 0) changes.push(changePlain(workloadKind, world, workload, { labels }))
  }
  return changes
}

/** Labels are built from their body alone. */
const NO_CALL = undefined as never

function resolve(world: World, { label }: Assignment): { href?: string; key: string; value: string } | null {
  if (!('href' in label)) {
    const href = findLabel(world, label)
    return { ...(href === null ? {} : { href }), key: label.key, value: label.value }
  }
  const found = world.labels.get(label.href)
  if (!found || found.deleted === true) return null
  return { href: label.href, key: String(found.key), value: String(found.value) }
}

function findLabel(world: World, { href, key, value }: { href?: string; key: string; value: string }): string | null {
  const live = (object: PceObject | undefined) => (object && object.deleted !== true ? object.href : null)
  if (href !== undefined) return live(world.labels.get(href))
  return live(world.labels.live().find((label) => label.key === key && label.value === value))
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
