import { createHash } from 'node:crypto'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { isMode, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import type { ToolContext } from '../call.js'
import { scanEvery } from '../inventory/fetch-every.js'
import { findObject } from '../inventory/find-object.js'
import { requireInside } from '../inventory/limited-reading.js'
import { resolveApplication } from '../inventory/find-labels.js'
import { NONE_LEFT_OUT, readKubernetesWorkloads, tellLeftOut, type LeftOut } from '../inventory/kubernetes-workloads.js'
import { isManaged, modeOf } from '../inventory/workloads.js'
import { compareTexts } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import { mapBounded } from '../text/pace-work.js'
import { applicationOfLabels, type Application } from '../traffic/applications.js'

/** The reasons why a VEN does not, or may not, enforce a new mode at present, no matter which one. */
export const OBSTACLES = {
  unmanaged: 'no VEN runs there, so no mode is enforced',
  ven_suspended: 'the VEN is suspended and enforces nothing until it is active again',
  ven_stopped: 'the VEN is stopped: it takes the mode up when it runs again',
  ven_uninstalled: 'the VEN was uninstalled, so no mode is enforced',
  offline: 'the VEN does not reach the PCE: it goes on in the mode it had, and takes the new one up when it is back',
  not_known: 'the PCE does not tell whether the VEN is online, so when it takes the mode up is not known',
} as const
export type Obstacle = keyof typeof OBSTACLES

/** The current state of a workload whose mode is to be changed. */
export interface ChosenWorkload {
  href: string
  /** The name of the workload, or its host name if it has no name. */
  name: string
  isManaged: boolean
  /** The current enforcement mode; null if the PCE reports no mode, or a mode that this server does not know. */
  mode: EnforcementMode | null
  /** True if it is not known what the workload does with traffic now. */
  isUntold: boolean
  obstacle: Obstacle | null
}

/** The workloads that a call selected. */
export interface ChosenWorkloads {
  /** The application that the call selected; null if the call named workloads individually. */
  application: { labels: readonly Label[]; is: Application } | null
  /** The workloads without duplicates, sorted by name. */
  workloads: readonly ChosenWorkload[]
  /**
   * The Kubernetes workloads of the application. They are left out, because their modes are set in the container
   * workload profiles of their namespaces.
   */
  leftOut: LeftOut
}

/** How a caller selects workloads: by application, or by a list of names and hrefs. */
export interface WorkloadChoice {
  app_name?: string
  env_name?: string
  workloads?: readonly string[]
}

/** Maximum number of named workloads that are looked up at the same time. */
const LOOKUPS = 4

/**
 * Finds the workloads that the caller selected and reads their current state.
 * @throws missing_identifier or conflicting_identifiers unless the selection is either one application or a list; the
 * errors of name resolution; no_workloads if the application has no workloads; pce_error if the PCE does not send all
 * of them
 */
export async function chooseWorkloads(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  choice: WorkloadChoice,
): Promise<ChosenWorkloads> {
  const { app_name: app, env_name: env, workloads: named } = choice
  if (named !== undefined && (app !== undefined || env !== undefined)) {
    const text = 'Give app_name and env_name, or workloads, not both: they may mean different ones.'
    throw new ToolError('conflicting_identifiers', text, { arguments: ['app_name', 'env_name', 'workloads'] })
  }
  if (named !== undefined)
    return { application: null, workloads: sortOnce(await findNamed(ctx, named)), leftOut: NONE_LEFT_OUT }
  if (app === undefined || env === undefined) {
    const text = 'Say which workloads: give app_name and env_name, or workloads.'
    throw new ToolError('missing_identifier', text, { arguments: ['app_name', 'env_name', 'workloads'] })
  }
  const labels = await resolveApplication(ctx, { app_name: app, env_name: env })
  const workloads = await readApplication(ctx, labels)
  const filters = { labels: labels.map(({ href }) => href) }
  const { items, unread } = await readKubernetesWorkloads(ctx, filters, ({ href }) => href)
  const leftOut = { left: items.length, unread }
  const is = applicationOfLabels(labels)
  if (workloads.length === 0) {
    const text = `No workload has the labels ${quote(`app=${is.app}`)} and ${quote(`env=${is.env}`)}.`
    const whole = [text, ...tellLeftOut(leftOut)].join(' ')
    const hint = 'Check the labels with get-workloads: a workload has to have both.'
    throw new ToolError('no_workloads', whole, { app: is.app, env: is.env }, { hint })
  }
  return { application: { labels, is }, workloads: sortOnce(workloads), leftOut }
}

/**
 * Reads the chosen workloads again and returns them by href. Workloads that no longer exist or cannot be read are
 * missing from the result. Rejects if the call is cancelled.
 */
export async function readAgain(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal'>,
  { application, workloads }: ChosenWorkloads,
): Promise<ReadonlyMap<string, ChosenWorkload>> {
  const again =
    application === null
      ? await mapBounded(workloads, LOOKUPS, ({ href }) => readOne(ctx, href))
      : await readApplication(ctx, application.labels)
  return new Map(again.flatMap((one) => (one === null ? [] : [[one.href, one] as const])))
}

/**
 * Returns the SHA-256 digest, in lower-case hex, of the hrefs, names and modes of the workloads (D21). Other fields are
 * left out, because they change by themselves or are not shown.
 */
export function digestModes({ workloads }: ChosenWorkloads): string {
  const rows = workloads.map(({ href, name, isManaged: has, mode }) => [href, name, has, mode] as const)
  return createHash('sha256')
    .update(JSON.stringify(rows.sort(([a], [b]) => (a < b ? -1 : Number(a > b)))))
    .digest('hex')
}

async function findNamed(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  named: readonly string[],
): Promise<ChosenWorkload[]> {
  const found = await mapBounded(named, LOOKUPS, (text) =>
    findObject(pce, 'workloads', text.trim().startsWith('/') ? { href: text } : { name: text }, signal),
  )
  for (const { labels } of found)
    await requireInside(
      pce,
      'A workload that you named',
      (labels ?? []).map(({ href }) => href),
    )
  return found.map(describe)
}

async function readApplication(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  labels: readonly Label[],
): Promise<ChosenWorkload[]> {
  const found: ChosenWorkload[] = []
  const params = { labels: [labels.map(({ href }) => href)] }
  const { isWhole, totalCount } = await scanEvery(
    { api: pce.workloads, params, signal },
    {
      onBegin: () => void (found.length = 0),
      onItems(items) {
        for (const item of items) found.push(describe(item))
      },
      isHeld: true,
    },
  )
  if (isWhole) return found
  // The call fails if the PCE did not send all workloads, because it must not silently change only a part of an
  // application.
  const text = `The PCE sent ${found.length} of ${totalCount ?? 'more'} workloads of the application. Nothing was changed.`
  throw new ToolError('pce_error', text, { workloads_seen: found.length }, { hint: 'Name workloads instead.' })
}

async function readOne(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  href: string,
): Promise<ChosenWorkload | null> {
  try {
    const workload = await pce.workloads.getByReference(href, { signal })
    const isThere = typeof (workload as Partial<Workload> | null)?.href === 'string' && workload.deleted !== true
    return isThere ? describe(workload) : null
  } catch (error) {
    if (signal.aborted) throw error
    return null
  }
}

function describe(workload: Workload): ChosenWorkload {
  const { href, name, hostname, enforcement_mode: told } = workload
  return {
    href,
    name: name ?? hostname ?? href,
    isManaged: isManaged(workload),
    mode: isMode(told) ? told : null,
    isUntold: modeOf(workload) === 'unknown',
    obstacle: obstacleOf(workload),
  }
}

function obstacleOf(workload: Workload): Obstacle | null {
  if (!isManaged(workload)) return 'unmanaged'
  const status = workload.ven?.status ?? workload.agent?.status?.['status']
  if (status === 'suspended') return 'ven_suspended'
  if (status === 'stopped') return 'ven_stopped'
  if (status === 'uninstalled') return 'ven_uninstalled'
  return workload.online === true ? null : workload.online === false ? 'offline' : 'not_known'
}

const sortOnce = (workloads: readonly ChosenWorkload[]): ChosenWorkload[] =>
  [...new Map(workloads.map((one) => [one.href, one])).values()].sort(
    (a, b) => compareTexts(a.name, b.name) || compareTexts(a.href, b.href),
  )
