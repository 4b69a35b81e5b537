import type { Test } from 'tap'

/**
 * Compares only what `wanted` names. An object needs the named keys, each compared by these rules, and may have others; a list
 * needs exactly these elements (`{ length: 3 }`: so many); a RegExp needs a text that it matches; `Number`, `String` and other constructors need a value of
 * that kind; everything else needs the very same value. A failure shows the difference between the named parts.
 *
 * tap's own `t.match` lets longer lists, and texts that merely contain the wanted one, pass.
 */
export function partial(t: Test, found: unknown, wanted: unknown, name = 'has the named parts'): boolean {
  t.currentAssert = partial
  return t.strictSame(namedParts(found, wanted), wanted, name)
}

/** The text contains the part, letter by letter. A failure shows both. */
export function contains(t: Test, text: unknown, part: string, name = 'contains the part'): boolean {
  t.currentAssert = contains
  return typeof text === 'string' && text.includes(part) ? t.pass(name) : t.fail(name, { text, part })
}

/** What `found` has in the place of each part of `wanted`; a part that fits a RegExp or a constructor becomes that itself. */
function namedParts(found: unknown, wanted: unknown): unknown {
  if (wanted instanceof RegExp) return typeof found === 'string' && wanted.test(found) ? wanted : found
  if (typeof wanted === 'function') return isOfKind(found, wanted) ? wanted : found
  if (Array.isArray(wanted)) {
    if (!Array.isArray(found)) return found
    return found.map((element, index) => (index in wanted ? namedParts(element, wanted[index]) : element))
  }
  if (!isPlain(wanted) || typeof found !== 'object' || found === null) return found
  if (Array.isArray(found) && !('length' in wanted)) return found
  const entries = Object.entries(wanted)
    // A key that is wanted as undefined may as well be absent.
    .filter(([key, part]) => key in found || part === undefined)
    .map(([key, part]) => [key, namedParts((found as Record<string, unknown>)[key], part)])
  return Object.fromEntries(entries)
}

function isOfKind(found: unknown, kind: object): boolean {
  if (kind === Number) return Number.isFinite(found)
  if (kind === String) return typeof found === 'string'
  if (kind === Boolean) return typeof found === 'boolean'
  if (kind === Function) return typeof found === 'function'
  return found instanceof (kind as new () => unknown)
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
