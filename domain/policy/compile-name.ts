/**
 * Returns a function that tests whether a domain name matches a pattern of an IP list. `*` stands for any characters,
 * and case is ignored. The parts between the stars are searched for one after the other, without backtracking, so the
 * test is fast for any number of stars. The PCE does not limit their number.
 */
export function compileName(pattern: string): (fqdn: string) => boolean {
  const [first = '', ...rest] = pattern.toLowerCase().split('*')
  const last = rest.pop()
  if (last === undefined) return (fqdn) => fqdn.toLowerCase() === first
  const middle = rest.filter((part) => part !== '')
  return (fqdn) => {
    const name = fqdn.toLowerCase()
    if (!name.startsWith(first) || !name.endsWith(last)) return false
    let at = first.length
    for (const part of middle) {
      const found = name.indexOf(part, at)
      if (found === -1) return false
      at = found + part.length
    }
    return at + last.length <= name.length
  }
}
