import type { Adapter, AdapterPayload } from 'oidc-provider'

/** What one identity provider remembers: clients, sessions, codes, grants. It outlives a change of keys. */
export class Storage {
  readonly #rows = new Map<string, AdapterPayload>()

  /** Makes a client known, or replaces what was known of it. */
  putClient(client: AdapterPayload & { client_id: string }): void {
    this.#rows.set(`Client:${client.client_id}`, client)
  }

  /** `adapter` of the provider's configuration. */
  readonly adapter = (model: string): Adapter => {
    const rows = this.#rows
    const find = (matches: (row: AdapterPayload) => boolean) =>
      Promise.resolve([...rows].find(([key, row]) => key.startsWith(`${model}:`) && matches(row))?.[1])
    return {
      upsert: (id, row) => Promise.resolve(void rows.set(`${model}:${id}`, row)),
      find: (id) => Promise.resolve(rows.get(`${model}:${id}`)),
      findByUid: (uid) => find((row) => row.uid === uid),
      findByUserCode: (code) => find((row) => row.userCode === code),
      consume: (id) => {
        const row = rows.get(`${model}:${id}`)
        if (row) row.consumed = Math.floor(Date.now() / 1000)
        return Promise.resolve()
      },
      destroy: (id) => Promise.resolve(void rows.delete(`${model}:${id}`)),
      revokeByGrantId: (grantId) => {
        for (const [key, row] of rows) if (row.grantId === grantId) rows.delete(key)
        return Promise.resolve()
      },
    }
  }
}
