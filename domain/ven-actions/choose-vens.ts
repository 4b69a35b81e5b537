import { createHash } from 'node:crypto'
import { PceApiError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import { isMode, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import type { Ven } from '../../schemas/pce/ven.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { WorkloadSelection } from '../../schemas/workload-selection.js'
import type { ToolContext } from '../call.js'
import { resolveSelection } from '../hygiene/select-workloads.js'
import { OddListError, scanWhole } from '../inventory/fetch-every.js'
import { findObject } from '../inventory/find-object.js'
import { hintAtHostname } from '../inventory/hint-at-hostname.js'
import { parseHref } from '../inventory/parse-href.js'
import { isManaged, modeOf } from '../inventory/workloads.js'
import { compareTexts } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import { mapBounded } from '../text/pace-work.js'
import { joinWorkload, readWork, workloadOf } from '../vens/join-workload.js'

/** A VEN on which a call acts, in the state in which it was read. */
export interface ChosenVen {
  href: string
  workload: string
  /** The name of the workload, or its host name if it has no name. */
  name: string
  status: string | null
  version: string | null
  /** The release to which the VEN is currently being upgraded; null if no upgrade is under way. */
  upgradeTo: string | null
  online: boolean | null
  mode: EnforcementMode | null
  /** True if it is not known what the workload does with traffic while its VEN runs. */
  isUntold: boolean
  /** Whether the PCE allows unpairing the VEN; null if it does not say. */
  mayUnpair: boolean | null
}

/** The arguments that select VENs by their workloads: either a list of names and hrefs, or filters. */
export interface VenChoice {
  workloads?: readonly string[]
  selection?: WorkloadSelection
  max_matches?: number
}

type Ctx = Pick<ToolContext<true>, 'pce' | 'now' | 'signal' | 'beforeWriting'>

/** Maximum number of VENs that are read one by one. If there are more, the list of VENs is read. */
const FEW = 20
const IN_FLIGHT = 4
const MOST_LISTED = 50

/**
 * Finds the VENs that a call names, sorted by name and without duplicates, and reads their state.
 *
 * @param most the maximum number of VENs on which the call acts
 * @throws {ToolError} missing_identifier, conflicting_identifiers, the errors of name resolution, invalid_argument for
 * workloads without a VEN, an empty selection or too many matches, no_workloads
 */
export async function chooseVens(ctx: Ctx, choice: VenChoice, most: number): Promise<ChosenVen[]> {
  const reading = { pce: ctx.pce, now: ctx.now, signal: ctx.beforeWriting }
  const { workloads: named, selection } = choice
  if ((named === undefined) === (selection === undefined)) {
    const names = ['workloads', 'selection']
    throw new ToolError(
      named === undefined ? 'missing_identifier' : 'conflicting_identifiers',
      'Say which VENs in one way: workloads or selection.',
      { arguments: names },
    )
  }
  const found = named === undefined ? await select(reading, selection ?? {}, most) : await findNamed(reading, named)
  const byHref = new Map(found.map((one) => [one.href, one]))
  const vens = await readVens(reading, [...byHref.values()].map(venOf))
  return [...byHref.values()]
    .map((workload) => describe(workload, vens.get(venOf(workload))))
    .sort((a, b) => compareTexts(a.name, b.name) || compareTexts(a.href, b.href))
}

/**
 * Throws invalid_argument if a call would write to everything that a selection matches without saying how many VENs
 * that may be at most. The selection may match more than when the caller last looked.
 */
export function requireBound({ selection, max_matches: most }: VenChoice, matched: number): void {
  if (selection === undefined || (most !== undefined && matched <= most)) return
  const text =
    most === undefined
      ? `The selection matches ${matched} VENs. Repeat the call with max_matches ${matched} to write.`
      : `The selection matches ${matched} VENs, more than max_matches allows (${most}). Nothing was written.`
  throw new ToolError('invalid_argument', text, { argument: 'max_matches', matched })
}

/**
 * Returns the SHA-256 digest, in lower-case hex, of an action and of the part of the VENs' state that decides what it
 * does (D21).
 */
export function digestVens(action: object, vens: readonly ChosenVen[]): string {
  const rows = vens.map(({ href, name, status, version, mode }) => [href, name, status, version, mode])
  return createHash('sha256')
    .update(JSON.stringify([action, rows]))
    .digest('hex')
}

type Reading = Pick<Ctx, 'pce' | 'now' | 'signal'>

const venOf = ({ ven }: Workload): string => ven?.href ?? ''

async function findNamed({ pce, signal }: Reading, named: readonly string[]): Promise<Workload[]> {
  const found = await mapBounded(named, IN_FLIGHT, async (text) => {
    const href = text.trim()
    if (!href.startsWith('/')) return findObject(pce, 'workloads', { name: text }, signal)
    const parsed = parseHref(href)
    if (parsed?.kind !== 'vens' || parsed.org !== pce.orgId) return findObject(pce, 'workloads', { href }, signal)
    const ven = await readVen({ pce, signal }, href)
    const own = ven === undefined ? null : workloadOf(ven)
    if (own === null) throw new ToolError('not_found', `No VEN has the href ${quote(href)}.`, { argument: 'workloads' })
    return findObject(pce, 'workloads', { href: own }, signal)
  })
  const without = found.filter((one) => !isManaged(one) || venOf(one) === '')
  if (without.length === 0) return found
  const names = without.slice(0, MOST_LISTED).map(({ name, hostname, href }) => quote(name ?? hostname ?? href))
  const more = without.length > names.length ? ' and others' : ''
  throw new ToolError(
    'invalid_argument',
    `No VEN runs on ${names.join(', ')}${more}. Nothing was written.`,
    { argument: 'workloads', unmanaged: without.slice(0, MOST_LISTED).map(({ href }) => href) },
    { hint: 'Leave them out.' },
  )
}

async function select(ctx: Reading, filters: WorkloadSelection, most: number): Promise<Workload[]> {
  const { exact: _exact, managed, ...narrowing } = filters
  if (Object.values(narrowing).every((value) => value === undefined)) {
    const text = 'selection is empty, which would be every VEN. Name them by something they have in common.'
    throw new ToolError('invalid_argument', text, { argument: 'selection' })
  }
  if (managed === false)
    throw new ToolError('invalid_argument', 'Workloads that are not managed have no VEN.', { argument: 'selection' })
  const { params, ownFilter } = await resolveSelection(ctx.pce, { ...filters, managed: true }, ctx)
  const found: Workload[] = []
  let matched = 0
  const query = { api: ctx.pce.workloads, params, signal: ctx.signal }
  await scanWhole(query, {
    onBegin: () => void ((found.length = 0), (matched = 0)),
    onItems(items) {
      for (const one of items) {
        if (!isManaged(one) || venOf(one) === '' || ownFilter?.(one) === false) continue
        matched += 1
        if (matched <= most) found.push(one)
      }
    },
  })
  if (matched > most) {
    const text = `The selection matches ${matched} VENs; a call acts on ${most} at most. Narrow it.`
    throw new ToolError('invalid_argument', text, { argument: 'selection', matched })
  }
  if (matched > 0) return found
  const others = await hintAtHostname({ ...query, isNarrowed: ownFilter !== undefined })
  const text = ['The selection matches no VEN.', ...(others === null ? [] : [others])].join(' ')
  throw new ToolError('no_workloads', text, { argument: 'selection' })
}

/** Reads VENs by href. VENs that the PCE does not have, or no longer has, are missing from the result. */
export async function readVens(
  { pce, signal }: Pick<Reading, 'pce' | 'signal'>,
  hrefs: readonly string[],
): Promise<Map<string, Ven>> {
  const found = new Map<string, Ven>()
  if (hrefs.length <= FEW) {
    await mapBounded(hrefs, IN_FLIGHT, async (href) => {
      const ven = await readVen({ pce, signal }, href)
      if (ven !== undefined) found.set(href, ven)
    })
    return found
  }
  const wanted = new Set(hrefs)
  await scanWhole(
    { api: pce.vens, params: {}, signal },
    {
      onBegin: () => found.clear(),
      onItems: (items: Ven[]) => {
        for (const ven of items) if (wanted.has(ven.href)) found.set(ven.href, ven)
      },
    },
  )
  return found
}

async function readVen({ pce, signal }: Pick<Reading, 'pce' | 'signal'>, href: string): Promise<Ven | undefined> {
  try {
    const ven = await pce.vens.getByReference(href, { signal })
    if (ven.href !== href) throw new OddListError('the VEN that was asked for')
    return ven
  } catch (error) {
    if (error instanceof PceApiError && error.isGone) return undefined
    throw error
  }
}

function describe(workload: Workload, ven: Ven | undefined): ChosenVen {
  const { name, hostname, href } = workload
  if (ven === undefined) {
    const text = `The PCE does not have the VEN that the workload ${quote(name ?? hostname ?? href)} names. Nothing was written.`
    throw new ToolError('not_found', text, { argument: 'workloads', href: venOf(workload) })
  }
  const { status, version, upgradeTo, online } = joinWorkload(ven, readWork(workload))
  const { enforcement_mode: mode } = workload
  return {
    href: ven.href,
    workload: href,
    name: name || hostname || href,
    status,
    version,
    upgradeTo,
    online,
    mode: isMode(mode) ? mode : null,
    isUntold: modeOf(workload) === 'unknown',
    mayUnpair: ven.unpair_allowed ?? null,
  }
}
