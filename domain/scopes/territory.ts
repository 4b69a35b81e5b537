import type { PceClient } from '../../pce-client/index.js'
import type { CallerScopes } from '../../schemas/scopes.js'
import type { LabelGroup } from '../../schemas/pce/label.js'
import type { ReadContext } from '../inventory/labels.js'
import { pickEvery } from '../inventory/fetch-every.js'
import { createGroupTree } from '../inventory/label-groups.js'
import { indexLabels, type LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { Shield } from './shield.js'

/** One scope of a caller, with the hrefs of its labels. */
export interface Land {
  /** For each label key, the hrefs of the allowed labels. An object inside has one of them. */
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>
  readonly extra: boolean
}

/** The scopes of a caller, looked up on one PCE. Labels that do not exist there are left out. */
export interface Territory {
  readonly everything: boolean
  readonly lands: readonly Land[]
  readonly create: ReadonlySet<string>
  /**
   * What no write may touch. If present, everything else is inside. It is absent if a caller's scopes are to be judged.
   */
  readonly shield?: Shield
  /** Returns the key of a label; undefined if there is no such label. */
  readonly keyOf: (href: string) => string | undefined
  readonly labels: Pick<LabelIndex, 'get' | 'find'>
  /**
   * Returns the labels that a label group contains, in the draft or in the active policy; undefined if neither has the
   * group.
   */
  readonly membersOf: (href: string) => ReadonlySet<string> | undefined
  /** Returns the name of a label for people, `key=value`. */
  readonly nameOf: (href: string) => string
}

const GROUP = 'labelgroup:'

/**
 * Finds the labels of a caller's scopes on the PCE. A label that does not exist there gives access to nothing. A label
 * group gives access only to labels that it contains in the active policy as well as in the draft, so that nobody
 * widens a scope by editing a draft.
 * @throws the errors of the PCE client, and IncompleteListError if not all labels could be read.
 */
export async function surveyTerritory(
  pce: PceClient,
  scopes: CallerScopes,
  { signal }: Pick<ReadContext, 'signal'>,
): Promise<Territory> {
  const labels = indexLabels(await pickEvery({ api: pce.labels, params: {}, signal }, (label) => label))
  const groups = await readGroups(pce, signal)
  const lands = scopes.grants.map(({ labels: asked, extra }) => ({
    extra,
    labels: new Map(
      Object.entries(asked).map(([key, values]) => [
        key,
        new Set(values.flatMap((value) => resolveValue(key, value, labels, groups))),
      ]),
    ),
  }))
  return {
    everything: scopes.everything,
    lands,
    create: new Set(scopes.create),
    keyOf: (href) => labels.get(href)?.key,
    labels,
    membersOf: (href) => groups.widest(href),
    nameOf: (href) => {
      const label = labels.get(href)
      return label === undefined ? href : `${label.key}=${label.value}`
    },
  }
}

interface Groups {
  /** The hrefs of the labels that the group of this key and name contains in both policy versions. */
  readonly narrowest: (key: string, name: string) => string[]
  /** The hrefs of the labels that the group contains in one of the policy versions; undefined if it is in neither. */
  readonly widest: (href: string) => ReadonlySet<string> | undefined
}

async function readGroups(pce: PceClient, signal: AbortSignal): Promise<Groups> {
  const [draft, active] = await Promise.all(
    (['draft', 'active'] as const).map(async (policyVersion) => {
      const groups = await pickEvery({ api: pce.labelGroups, policyVersion, params: {}, signal }, (group) => group)
      const tree = createGroupTree(groups)
      const labelsOf = (group: LabelGroup) => new Set(tree.membersOf(group).labels.map(({ href }) => href))
      return {
        byHref: new Map(groups.map((group) => [toDraftHref(group.href), labelsOf(group)])),
        byName: (key: string, name: string) => {
          const found = groups.filter((group) => group.key === key && group.name === name)
          return found.length === 1 ? labelsOf(found[0]!) : new Set<string>()
        },
      }
    }),
  )
  return {
    narrowest(key, name) {
      const drafted = draft!.byName(key, name)
      return [...active!.byName(key, name)].filter((href) => drafted.has(href))
    },
    widest(href) {
      const found = [draft!, active!].flatMap(({ byHref }) => byHref.get(toDraftHref(href)) ?? [])
      return found.length === 0 ? undefined : new Set(found.flatMap((labels) => [...labels]))
    },
  }
}

function resolveValue(key: string, value: string, labels: LabelIndex, groups: Groups): string[] {
  if (value.startsWith(GROUP)) return groups.narrowest(key, value.slice(GROUP.length))
  const found = labels.find(key, value)
  return found === undefined ? [] : [found.href]
}
