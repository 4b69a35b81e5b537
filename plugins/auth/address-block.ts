/**
 * Whom refusals are counted against: an IPv4 address, or the first 64 bits of an IPv6 address, of which one household
 * has more than could ever be counted. Requests without an address come over a Unix socket and count as one.
 */
export function addressBlock(remote: string | undefined): string {
  if (remote === undefined || remote === '') return 'local'
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(remote)?.[1]
  if (mapped !== undefined) return mapped
  if (!remote.includes(':')) return remote
  const [head = '', tail] = remote.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length)
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after]
  return `${groups
    .slice(0, 4)
    .map((group) => parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
