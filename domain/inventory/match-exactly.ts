import { createAddressTest, isAddress } from './parse-addresses.js'

type Texts = readonly (string | null | undefined)[]

/**
 * The test of `exact: true` (D96): that the whole value an object has is the one asked for, in the same case. The PCE finds parts
 * (P8), so it narrows the list and this decides. `valuesOf` says which values an object has under the name of each filter; addresses
 * are the same in any spelling. Undefined where there is nothing to test.
 */
export function matchExactly<T>(
  exact: boolean | undefined,
  filters: Readonly<Record<string, unknown>>,
  valuesOf: Readonly<Record<string, (item: T) => Texts>>,
): ((item: T) => boolean) | undefined {
  const given = Object.entries(valuesOf).filter(([name]) => filters[name] !== undefined)
  if (exact !== true || given.length === 0) return undefined
  const tests = given.map(([name, values]) => ({ values, isWanted: createAddressTest(filters[name] as string) }))
  return (item) => tests.every(({ values, isWanted }) => values(item).some((value) => value != null && isWanted(value)))
}

/** One test of all that are given; undefined where none is. */
export function allOf<T>(...tests: (((item: T) => boolean) | undefined)[]): ((item: T) => boolean) | undefined {
  const given = tests.filter((test) => test !== undefined)
  return given.length === 0 ? undefined : (item) => given.every((test) => test(item))
}

/**
 * An address filter as it is sent to the PCE. Of an IPv6 address nothing is sent where it has to match exactly: the PCE compares
 * letters, and an address has several spellings.
 */
export function addressFilter(exact: boolean | undefined, address: string | undefined): string | undefined {
  return exact === true && address !== undefined && address.includes(':') && isAddress(address) ? undefined : address
}
