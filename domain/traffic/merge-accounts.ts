import { quote } from '../text/escape-text.js'
import type { Account } from './parse-account.js'

/** An account that may belong to the same person as the person's main account, with the reason. */
export interface Alias {
  account: Account
  /** Why both accounts may belong to the same person. */
  why: string
}

/** One or more accounts that are treated as one person or one service. */
export interface Person {
  /** The account under which the person is shown. */
  main: Account
  /** Other spellings of the main account, which are the same account for certain. */
  spellings: readonly Account[]
  /** Accounts that may belong to the same person; this is not certain. */
  aliases: readonly Alias[]
  /** Accounts with the same user name that were not merged, because they may belong to more than one person. */
  namesakes: readonly Account[]
}

/** Windows shortens a host name to this many characters when it writes it as a computer name before `\`. */
const COMPUTER_NAME = 15

/**
 * Merges accounts that may belong to one person. Accounts with the same user name are merged if their realms may be the
 * same; an account without a realm is merged with them only if just one realm remains. Accounts in different realms,
 * and local accounts of a computer, stay separate. Only different spellings of one account are merged with certainty;
 * all others become aliases, each with a reason.
 *
 * @param accounts all accounts, each listed once, the most important first
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
 * Creates a function that returns equal strings for two realms that may be the same: a short domain and a full realm
 * that begins with it (`CORP` and `corp.example`). If several full realms begin with the short one, none are merged.
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
    // The domain before the backslash may also be written in full.
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
