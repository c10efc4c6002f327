/**
 * A data provider for react-admin, with optimistic locking and live changes.
 *
 *     const dataProvider = diptychDataProvider('https://api.example.org', { token: () => session.accessToken })
 *     <Admin dataProvider={dataProvider}>…
 */
import { useQueryClient } from '@tanstack/react-query'
import { connect, difference, Refused } from 'diptych-rest'
import { HttpError, useDataProvider, useResourceContext } from 'ra-core'
import { useEffect } from 'react'

/** @typedef {{ type: 'created' | 'updated' | 'deleted' | 'gap', topic: string, payload: { ids: (string | number)[] } }} LiveEvent */
/** @typedef {(event: LiveEvent) => void} LiveCallback */
/**
 * @typedef {import('ra-core').DataProvider & {
 *   subscribe: (topic: string, callback: LiveCallback) => Promise<void>,
 *   unsubscribe: (topic: string, callback: LiveCallback) => Promise<void>,
 * }} LiveDataProvider
 */

const TYPES = /** @type {const} */ ({ CREATED: 'created', UPDATED: 'updated', LEFT: 'deleted', DELETED: 'deleted' })

/** The error that react-admin understands: messages of fields are shown at their inputs. @param {unknown} error @returns {never} */
function raise(error) {
  if (!(error instanceof Refused)) throw error
  const fields = Object.keys(error.fields).length ? { errors: { ...error.fields, root: { serverError: error.message } } } : {}
  throw new HttpError(error.message, error.status, { code: error.code, ...fields })
}

/** Without what was not filled in. @param {Record<string, any>} data */
const given = (data) => Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null && value !== undefined))

/** @param {string} url @param {import('diptych-rest').Options} [options] @returns {LiveDataProvider} */
export function diptychDataProvider(url, options) {
  const rest = connect(url, options)
  /** @type {Map<string, Map<LiveCallback, () => void>>} */
  const topics = new Map()

  /** @param {string} resource @param {any} params @param {Record<string, any>} [filter] */
  async function getList(resource, { pagination, sort, filter: asked, meta, signal }, filter = {}) {
    const { page = 1, perPage = 25 } = pagination ?? {}
    const order = sort?.field ? `${sort.order === 'DESC' ? '-' : ''}${sort.field}` : undefined
    const where = { ...asked, ...filter }
    const options = { first: perPage, offset: (page - 1) * perPage, sort: order, where, fields: meta?.fields, signal }
    const { rows, total } = await rest.list(resource, options).catch(raise)
    return { data: /** @type {any[]} */ (rows), total }
  }

  return {
    supportAbortSignal: true,
    getList: (resource, params) => getList(resource, params),
    getManyReference: (resource, params) => getList(resource, params, { [params.target]: params.id }),
    getOne: async (resource, { id, meta, signal }) => {
      return { data: /** @type {any} */ (await rest.get(resource, id, { fields: meta?.fields, signal }).catch(raise)) }
    },
    getMany: async (resource, { ids, meta, signal }) => {
      return { data: /** @type {any[]} */ (await rest.many(resource, ids, { fields: meta?.fields, signal }).catch(raise)) }
    },
    create: async (resource, { data, meta }) => {
      return { data: /** @type {any} */ (await rest.create(resource, given(data), { fields: meta?.fields }).catch(raise)) }
    },
    update: async (resource, { id, data, previousData, meta }) => {
      const { version = previousData?.version, ...after } = /** @type {Record<string, any>} */ (data)
      const patch = difference(previousData ?? {}, after)
      return { data: /** @type {any} */ (await rest.update(resource, id, patch, { version, fields: meta?.fields }).catch(raise)) }
    },
    updateMany: async (resource, { ids, data }) => {
      await rest.each('PATCH', resource, ids, data).catch(raise)
      return { data: ids }
    },
    delete: async (resource, { id, previousData }) => {
      await rest.remove(resource, id, { version: previousData?.version }).catch(raise)
      return { data: /** @type {any} */ (previousData ?? { id }) }
    },
    deleteMany: async (resource, { ids }) => {
      await rest.each('DELETE', resource, ids).catch(raise)
      return { data: ids }
    },
    /** The topics of ra-realtime: `resource/posts`, and `resource/posts/ID` for one row. */
    subscribe: async (topic, callback) => {
      const [, resource = '', id] = topic.split('/')
      const stop = rest.follow(resource, (changes) => {
        if (changes === null) callback({ type: 'gap', topic, payload: { ids: id ? [id] : [] } })
        for (const type of /** @type {const} */ (['created', 'updated', 'deleted'])) {
          const ids = (changes ?? []).filter((change) => TYPES[change.kind] === type).map((change) => change.rowId)
          const wanted = id ? ids.filter((each) => String(each) === id) : ids
          if (wanted.length) callback({ type, topic, payload: { ids: wanted } })
        }
      })
      topics.set(topic, (topics.get(topic) ?? new Map()).set(callback, stop))
    },
    unsubscribe: async (topic, callback) => {
      topics.get(topic)?.get(callback)?.()
      topics.get(topic)?.delete(callback)
    },
  }
}

/** Read the resource of the view again when it changes: `<List><Live />…</List>`. @param {{ resource?: string }} props */
export function Live(props) {
  const resource = useResourceContext(props)
  const provider = /** @type {LiveDataProvider} */ (useDataProvider())
  const queries = useQueryClient()
  useEffect(() => {
    const topic = `resource/${resource}`
    const read = () => void queries.invalidateQueries({ queryKey: [resource] })
    void provider.subscribe(topic, read)
    return () => void provider.unsubscribe(topic, read)
  }, [resource, provider, queries])
  return null
}
