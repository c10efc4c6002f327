/**
 * A data provider for react-admin, with optimistic locking and live changes.
 *
 *     const dataProvider = diptychDataProvider('https://api.example.org', { token: () => session.accessToken })
 *     <Admin dataProvider={dataProvider}>…
 */
import { useQueryClient } from '@tanstack/react-query'
import { connect, difference, Refused } from 'diptych-rest'
import { DataProviderContext, HttpError, useResourceContext } from 'ra-core'
import { useContext, useEffect } from 'react'

/** @typedef {import('ra-core').DataProvider & Pick<import('diptych-rest').Connection, 'follow'>} LiveDataProvider */

/** The error that react-admin understands: messages of fields are shown at their inputs. @param {unknown} error @returns {never} */
function raise(error) {
  if (!(error instanceof Refused)) throw error
  const fields = Object.keys(error.fields).length ? { errors: { ...error.fields, root: { serverError: error.message } } } : {}
  throw new HttpError(error.message, error.status, { code: error.code, ...fields })
}

/** Without what was not filled in. @param {Record<string, any>} data */
const given = (data) => Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null && value !== undefined))

/** What react-admin takes of a request. @param {Promise<any>} request @param {any} [shown] what it shows instead of the response */
const dataOf = async (request, shown) => request.then((data) => ({ data: shown ?? data }), raise)

/** @param {string} url @param {import('diptych-rest').Options} [options] @returns {LiveDataProvider} */
export function diptychDataProvider(url, options) {
  const rest = connect(url, options)

  /** @param {string} resource @param {any} params */
  async function getList(resource, { pagination: { page = 1, perPage = 25 } = {}, sort, filter, meta, signal }) {
    const order = sort?.field && `${sort.order === 'DESC' ? '-' : ''}${sort.field}`
    const asked = { first: perPage, offset: (page - 1) * perPage, sort: order, where: filter, fields: meta?.fields, signal }
    const { rows, total } = await rest.list(resource, asked).catch(raise)
    return { data: /** @type {any[]} */ (rows), total }
  }

  return {
    supportAbortSignal: true,
    getList,
    getManyReference: (resource, params) =>
      getList(resource, { ...params, filter: { ...params.filter, [params.target]: params.id } }),
    getOne: (resource, { id, meta, signal }) => dataOf(rest.get(resource, id, { fields: meta?.fields, signal })),
    getMany: (resource, { ids, meta, signal }) => dataOf(rest.many(resource, ids, { fields: meta?.fields, signal })),
    create: (resource, { data, meta }) => dataOf(rest.create(resource, given(data), { fields: meta?.fields })),
    update: (resource, { id, data, previousData, meta }) => {
      const { version = previousData?.version, ...after } = /** @type {Record<string, any>} */ (data)
      return dataOf(rest.update(resource, id, difference(previousData ?? {}, after), { version, fields: meta?.fields }))
    },
    updateMany: (resource, { ids, data }) => dataOf(rest.each('PATCH', resource, ids, data), ids),
    delete: (resource, { id, previousData }) =>
      dataOf(rest.remove(resource, id, { version: previousData?.version }), previousData ?? { id }),
    deleteMany: (resource, { ids }) => dataOf(rest.each('DELETE', resource, ids), ids),
    follow: rest.follow,
  }
}

/** Read the resource of the view again when it changes: `<List><Live />…</List>`. @param {{ resource?: string }} props */
export function Live(props) {
  const resource = useResourceContext(props) ?? ''
  const { follow } = /** @type {LiveDataProvider} */ (useContext(DataProviderContext))
  const queries = useQueryClient()
  useEffect(() => follow(resource, () => void queries.invalidateQueries({ queryKey: [resource] })), [resource, follow, queries])
  return null
}
