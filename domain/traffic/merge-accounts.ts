import { quote } from '../text/escape-text.js'
import type { Account } from './parse-account.js'

/** An account that may be the same person as the main account of a `Person`, with the reason. */
export interface Alias {
  account: Account
  /** Why it may be the same person. */
  why: string
}

/** One or several accounts that are taken for one person, or for one service. */
export interface Person {
  /** The account under which the person is shown. */
  main: Account
  /** Other spellings of the main account, which are the same account for certain. */
  spellings: readonly Account[]
  /** Accounts that may be the same person, without any certainty. */
  aliases: readonly Alias[]
  /** Accounts of the same name that were not merged, because there is more than one that they may belong to. */
  namesakes: readonly Account[]
}

/** The number of characters of a host name that Windows keeps as the name of a computer in front of `\`. */
const COMPUTER_NAME = 15

/**
 * Merges the accounts that may be one person: those of the same name in realms that may be the same, and the name alone
 * if there is only one such realm. Accounts of the same name in different realms stay apart, and so does the local
 * account of a computer. Only spellings of one account are merged for certain; all others are aliases, with the reason.
 *
 * @param accounts all accounts, each once, by descending importance
 * @param hosts the host names of the sources, by which local accounts are recognised
 */
export function mergeAccounts(accounts: readonly Account[], hosts: Iterable<string>): Person[] {
  const computers = new Set([...hosts].map(computerName))
  const byName = new Map<string, Account[]>()
  for (const account of accounts) {
    const known = byName.get(account.name)
    if (known === undefined) byName.set(account.name, [account])
    else known.push(account)
  }
  return [...byName.values()].flatMap((namesakes) => mergeNamesakes(namesakes, computers))
}

const computerName = (host: string): string => (host.split('.')[0] as string).slice(0, COMPUTER_NAME).toLowerCase()

function mergeNamesakes(accounts: readonly Account[], computers: ReadonlySet<string>): Person[] {
  const isLocal = ({ form, realm }: Account) =>
    form === 'domain' && realm !== null && computers.has(computerName(realm))
  const realmOf = createRealms(accounts)
  const groups = new Map<string, Account[]>()
  const add = (id: string, account: Account) => groups.set(id, [...(groups.get(id) ?? []), account])
  for (const account of accounts)
    if (account.realm !== null) add(isLocal(account) ? `computer ${account.realm}` : realmOf(account), account)
  const bare = accounts.filter(({ realm }) => realm === null)
  const directories = [...groups].filter(([id]) => !id.startsWith('computer '))
  const [only] = directories
  if (bare.length > 0) {
    const joins = groups.size === 1 && only !== undefined ? only[0] : 'bare'
    for (const account of bare) add(joins, account)
  }
  return [...groups.values()].map((own) =>
    asPerson(own, groups.size === 1 ? [] : accounts.filter((one) => !own.includes(one))),
  )
}

/**
 * Creates a function that returns a text that is equal for two realms that may be the same: a domain in its short form
 * and a realm that begins with it (`CORP`, `corp.example`). If several realms begin so, none of them is merged.
 */
function createRealms(accounts: readonly Account[]): (account: Account) => string {
  const realms = new Map<string, Set<string>>()
  for (const { form, realm } of accounts)
    if (form === 'principal' && realm !== null) {
      const [first] = realm.split('.') as [string]
      realms.set(first, (realms.get(first) ?? new Set()).add(realm))
    }
  return ({ form, realm }) => {
    const text = realm as string
    const first = text.split('.')[0] as string
    // A domain may be written in full in front of the backslash, too.
    if ((realms.get(first)?.size ?? 0) > 1) return form === 'domain' && text === first ? `short ${text}` : text
    return realms.has(first) ? first : text
  }
}

function asPerson(accounts: readonly Account[], namesakes: readonly Account[]): Person {
  const main = (accounts.find(({ realm }) => realm !== null) ?? accounts[0])!
  const others = accounts.filter((account) => account !== main)
  return {
    main,
    spellings: others.filter(({ id }) => id === main.id),
    aliases: others.filter(({ id }) => id !== main.id).map((account) => ({ account, why: reasonOf(account, main) })),
    namesakes,
  }
}

function reasonOf(account: Account, main: Account): string {
  if (account.realm === null)
    return main.realm === null
      ? 'differs in case only, which counts on Linux'
      : 'the name alone, and no other realm has it'
  return account.realm === main.realm
    ? 'the same name and realm in another form'
    : `${quote(account.realm)} may be ${quote(main.realm as string)} in another form`
}
