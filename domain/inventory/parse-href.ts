import type { PolicyVersionSelector } from '../../schemas/common.js'

/** A PCE reference taken apart. `kind` is the path segment that names the type (`labels`, `rule_sets`, `sec_rules` …). */
interface ParsedHref {
  org: string
  /** Absent for kinds without versions. */
  version?: string
  kind: string
  /** Absent for the one object that has no id, firewall_settings. */
  id?: string
  /** The object it lives in, for rules and deny rules: a draft or active rule set href. */
  parent?: { kind: string; href: string }
}

/** Ids are numbers, UUIDs or names; a dot segment or a query would leave the path the caller names. */
const ID = String.raw`(?!\.{1,2}(?:/|$))[A-Za-z0-9_.:@~-]+`
const HREF = new RegExp(
  `^/orgs/(?<org>\\d+)/(?:sec_policy/(?<version>draft|active|\\d+)/)?(?<kind>[a-z_]+)(?:/(?<id>${ID}))?(?:/(?<childKind>[a-z_]+)/(?<childId>${ID}))?$`,
)

/** Parses an href strictly; null for anything that is not one. No path that climbs, no query, no escapes. */
export function parseHref(text: string): ParsedHref | null {
  const groups = text.length > 1024 ? undefined : HREF.exec(text)?.groups
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

/** The draft form of a versioned href, of whichever version; others unchanged. The id is the same in every version (P4). */
export function toDraftHref(href: string): string {
  return toVersionHref(href, 'draft')
}

/** The active form of a versioned href, which traffic queries want (P33). */
export function toActiveHref(href: string): string {
  return toVersionHref(href, 'active')
}

/** A versioned href in this version of the policy; others unchanged. */
export function toVersionHref(href: string, version: PolicyVersionSelector): string {
  return href.replace(/^(\/orgs\/\d+\/sec_policy)\/(?:draft|active|\d+)\//, `$1/${version}/`)
}
