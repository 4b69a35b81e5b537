import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { Refusal, notAcceptable, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { readFlag } from '../validate/query-filters.js'
import type { World } from '../world.js'
import { label } from './label.js'
import { changePlain, createPlain } from './plain-kind.js'
import { readArray, readTable, type Row } from './workload-import-rows.js'
import { workload } from './workload.js'

/** The placeholder in a dry run for the href of a label that would be created. */
const ONLY_THOUGHT_OF = ''

interface Import {
  call: Call
  createLabels: boolean
  dryRun: boolean
  changes: Change[]
  /** The labels that this import creates. In a dry run, they are only recorded here. */
  newLabels: Map<string, { href: string }>
}

/**
 * The route that changes existing workloads according to a CSV table with a header: `href` or `hostname` identifies the
 * workload, `label:<key>` columns set labels, and other columns are fields of a PUT. An empty cell changes nothing, and
 * a cell that contains `delete_token` removes the current value. A JSON array of workloads is accepted too, because one
 * client sends it (P54): items with an `href` are changes, others are new workloads. Every row has its own result.
 */
export const workloadImportRoute: Route = {
  path: '/orgs/:org/workloads/bulk_import',
  verbs: {
    PUT: {
      event: 'workloads.bulk_import',
      handle: (call) => {
        const flag = (name: string) => readFlag(call.query.get(name) ?? 'false', name)
        const [createLabels, dryRun] = [flag('create_labels'), flag('dry_run')]
        const rows =
          typeof call.body === 'string' ? readTable(call.body, call.query.get('delete_token')) : readArray(call.body)
        const work: Import = { call, createLabels, dryRun, changes: [], newLabels: new Map() }
        const json = rows.map((row) => importRow(work, row))
        return { status: 200, json, changes: work.changes }
      },
    },
  },
}

function importRow(work: Import, row: Row): Json {
  const { world } = work.call
  try {
    const current = findWorkload(world, row)
    if (!current) return createRow(work, row)
    const labels = row.labels.size > 0 ? { labels: mergeLabels(work, current, row.labels) } : {}
    const fields = workload.change!(world, current, { ...row.fields, ...labels })
    if (!work.dryRun) work.changes.push(changePlain(workload, world, current, fields))
    return { href: current.href, status: UNCERTAIN.importedRowStatus }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { href: row.href, status: UNCERTAIN.refusedRowStatus, ...error.errors[0] }
  }
}

function createRow(work: Import, row: Row): Json {
  const { call, dryRun, changes } = work
  const labels = row.labels.size > 0 ? { labels: mergeLabels(work, undefined, row.labels) } : {}
  const fields = workload.build!(call.world, { ...row.creation, ...labels }, call)
  if (dryRun) return { status: 'created' }
  const created = createPlain(workload, fields, call.world)
  changes.push(...created.changes)
  return { href: (created.json as unknown as PceObject).href, status: 'created' }
}

/**
 * Finds the workload of a row by the row's href, or by its hostname. If there is no such workload, the function returns
 * undefined for a row that creates a workload, and throws 404 for any other row.
 */
function findWorkload(world: World, { href, hostname, creation }: Row): PceObject | undefined {
  const found =
    href !== ''
      ? world.workloads.get(href)
      : world.workloads.live().find((candidate) => hostname !== '' && candidate.hostname === hostname)
  if (found && found.deleted !== true) return found
  if (!creation) throw notFound()
  return undefined
}

function mergeLabels(work: Import, current: PceObject | undefined, wanted: Row['labels']): { href: string }[] {
  const { world } = work.call
  const kept = ((current?.labels ?? []) as { href: string }[]).filter(({ href }) => {
    return !wanted.has(String(world.labels.get(href)?.key))
  })
  const given = [...wanted].flatMap(([key, value]) => (value === null ? [] : [findOrMakeLabel(work, key, value)]))
  return [...kept.map(({ href }) => ({ href })), ...given.filter(({ href }) => href !== ONLY_THOUGHT_OF)]
}

function findOrMakeLabel(work: Import, key: string, value: string): { href: string } {
  const { call, createLabels, dryRun, changes, newLabels } = work
  const { world } = call
  const known = world.labels.live().find((candidate) => candidate.key === key && candidate.value === value)
  if (known) return { href: known.href }
  const pair = JSON.stringify([key, value])
  const met = newLabels.get(pair)
  if (met) return met
  if (!createLabels) throw notAcceptable('input_validation_error', `There is no label ${value} of ${key}`)
  const fields = label.build!(world, { key, value }, call)
  if (dryRun) {
    newLabels.set(pair, { href: ONLY_THOUGHT_OF })
    return { href: ONLY_THOUGHT_OF }
  }
  const created = createPlain(label, fields, world)
  changes.push(...created.changes)
  const made = { href: (created.json as unknown as PceObject).href }
  newLabels.set(pair, made)
  return made
}
