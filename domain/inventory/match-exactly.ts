import { createAddressTest, isAddress } from './parse-addresses.js'

type Texts = readonly (string | null | undefined)[]

/**
 * Builds the test for `exact: true` (D96). An object passes if, for every filter, one of its values is equal to the
 * filter, including case. The test is needed because the PCE's own filter also matches parts of strings (P8). Two
 * spellings of the same address count as equal. Returns undefined if there is nothing to test.
 *
 * @param valuesOf for each filter name, a function that returns those values of an object that are compared with the
 * filter.
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

/** Combines the given tests into one that passes if all of them pass; returns undefined if none is given. */
export function allOf<T>(...tests: (((item: T) => boolean) | undefined)[]): ((item: T) => boolean) | undefined {
  const given = tests.filter((test) => test !== undefined)
  return given.length === 0 ? undefined : (item) => given.every((test) => test(item))
}

/**
 * Returns the address filter to send to the PCE. If `exact` is true, an IPv6 address is not sent: the PCE compares
 * addresses as strings, and an IPv6 address has several spellings.
 */
export function addressFilter(exact: boolean | undefined, address: string | undefined): string | undefined {
  return exact === true && address !== undefined && address.includes(':') && isAddress(address) ? undefined : address
}
