import type { PolicyVersionSelector } from '../../schemas/common.js'

/** The parts of a PCE href. `kind` is the path segment that names the type (`labels`, `rule_sets`, `sec_rules` …). */
interface ParsedHref {
  org: string
  /** The policy version; absent for types that have no versions. */
  version?: string
  kind: string
  /** The id of the object. It is absent for firewall_settings, which has no id, and in the href of a collection. */
  id?: string
  /** The object that contains this one, such as the rule set of a rule. Its href is of the same policy version. */
  parent?: { kind: string; href: string }
}

/**
 * Matches an id: a number, UUID or name. Dot segments and queries are excluded, because they could make the request go
 * to another path than the one shown to the caller.
 */
const ID = String.raw`(?!\.{1,2}(?:/|$))[A-Za-z0-9_.:@~-]+`
// eslint-disable-next-line no-restricted-syntax -- built from the constant above
const HREF = new RegExp(
  `^/orgs/(?<org>\\d+)/(?:sec_policy/(?<version>draft|active|\\d+)/)?(?<kind>[a-z_]+)(?:/(?<id>${ID}))?(?:/(?<childKind>[a-z_]+)/(?<childId>${ID}))?$`,
)

/**
 * Parses an href strictly: without dot segments, queries or escapes. Returns null for any value that is not an href,
 * including undefined for a field that is missing from an answer.
 */
export function parseHref(text: string): ParsedHref | null {
  const groups = typeof text !== 'string' || text.length > 1024 ? undefined : HREF.exec(text)?.groups
  if (groups === undefined) return null
  const { org = '', version, kind = '', id, childKind, childId } = groups
  const base = { org, ...(version === undefined ? {} : { version }) }
  if (childKind === undefined) return { ...base, kind, ...(id === undefined ? {} : { id }) }
  return {
    ...base,
    kind: childKind,
    id: childId as string,
    parent: { kind, href: text.slice(0, text.length - childKind.length - (childId as string).length - 2) },
  }
}

/**
 * Converts an href of a policy version to its draft form and returns other hrefs unchanged. An object has the same id
 * in every version (P4).
 */
export function toDraftHref(href: string): string {
  return toVersionHref(href, 'draft')
}

/** Converts an href of a policy version to its active form, as traffic queries need it (P33). */
export function toActiveHref(href: string): string {
  return toVersionHref(href, 'active')
}

/** Converts an href of any policy version to the given version and returns other hrefs unchanged. */
export function toVersionHref(href: string, version: PolicyVersionSelector): string {
  return href.replace(/^(\/orgs\/\d+\/sec_policy)\/(?:draft|active|\d+)\//, `$1/${version}/`)
}
