//! Compaction of record batches: a copy that holds the bytes of its own values and nothing else. Views and
//! slices share buffers with other batches, so that a batch that is written or counted would otherwise
//! include the bytes of its neighbours.

mod exec;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, GenericByteViewArray, GenericByteViewBuilder, MutableArrayData, RecordBatch,
    RecordBatchOptions, UInt64Array, make_array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{BinaryViewType, ByteViewType, DataType, StringViewType};
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;

pub(crate) use exec::CompactBatches;

/// Bytes of a buffer at most.
const MOST_OF_A_BUFFER: usize = 1 << 30;

/// Values may lie in so many times the bytes that they have.
const LOOSE: usize = 2;

/// The same rows with nothing else.
pub(crate) fn compact(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(compact_array).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

/// Whether values of this type may lie where those of others do.
fn has_views(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            has_views(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_views(field.data_type())),
        DataType::Map(field, _) => has_views(field.data_type()),
        _ => false,
    }
}

fn compact_array(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Utf8View => Ok(Arc::new(compact_views::<StringViewType>(array.as_byte_view()))),
        DataType::BinaryView => Ok(Arc::new(compact_views::<BinaryViewType>(array.as_byte_view()))),
        kind if has_views(kind) => {
            // The items of its own rows, and no others.
            let rows = UInt64Array::from_iter_values(0..array.len() as u64);
            let data = take(array, &rows, None)?.to_data();
            let items = data
                .child_data()
                .iter()
                .map(|items| compact_array(&make_array(items.clone())).map(|items| items.to_data()));
            let items = items.collect::<Result<_, _>>()?;
            Ok(make_array(data.into_builder().child_data(items).build()?))
        }
        _ => {
            let data = array.to_data();
            if array.get_buffer_memory_size() <= LOOSE * data.get_slice_memory_size()? {
                return Ok(Arc::clone(array));
            }
            let mut copy = MutableArrayData::new(vec![&data], false, data.len());
            copy.try_extend(0, 0, data.len())?;
            Ok(make_array(copy.freeze()))
        }
    }
}

fn compact_views<T: ByteViewType>(array: &GenericByteViewArray<T>) -> GenericByteViewArray<T> {
    if array.null_count() == 0 {
        return array.gc();
    }
    // A value may be there still where a null is said to be.
    let bytes = array.total_buffer_bytes_used().clamp(1, MOST_OF_A_BUFFER);
    let mut builder =
        GenericByteViewBuilder::<T>::with_capacity(array.len()).with_fixed_block_size(bytes as u32);
    array.iter().for_each(|value| builder.append_option(value));
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{BinaryViewArray, ListArray, StringViewArray};
    use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
    use datafusion::arrow::datatypes::Field;

    fn text(number: usize) -> String {
        format!("a value that is long, number {number}.")
    }

    /// Everything that lies beneath a column.
    fn beneath(array: &dyn Array) -> Vec<u8> {
        fn gather(data: &datafusion::arrow::array::ArrayData, all: &mut Vec<u8>) {
            data.buffers().iter().for_each(|buffer| all.extend_from_slice(buffer));
            data.child_data().iter().for_each(|child| gather(child, all));
        }
        let mut all = Vec::new();
        gather(&array.to_data(), &mut all);
        all
    }

    #[test]
    fn of_what_others_have_nothing_is_left() {
        let all: StringViewArray = (0..1000).map(|number| Some(text(number))).collect();
        let bytes: BinaryViewArray = (0..1000).map(|number| Some(text(number).into_bytes())).collect();
        let nulls = NullBuffer::from((0..1000).map(|row| row % 2 == 0).collect::<Vec<_>>());
        let with_nulls = StringViewArray::new(all.views().clone(), all.data_buffers().to_vec(), Some(nulls));
        let item = Arc::new(Field::new("item", DataType::Utf8View, true));
        let lists = ListArray::new(item, OffsetBuffer::from_lengths([10; 100]), Arc::new(all.clone()), None);
        let columns: [(ArrayRef, usize); 4] = [
            (Arc::new(all.slice(500, 10)), 10),
            (Arc::new(bytes.slice(500, 10)), 10),
            (Arc::new(with_nulls.slice(500, 10)), 5),
            (Arc::new(lists.slice(50, 1)), 10),
        ];
        for (column, values) in columns {
            let tight = compact_array(&column).unwrap();
            assert_eq!(&tight, &column);
            let (loose, left) = (beneath(&column), beneath(&tight));
            let has = |bytes: &[u8], number| {
                let text = text(number);
                bytes.windows(text.len()).any(|window| window == text.as_bytes())
            };
            assert!(has(&loose, 7), "{:?}", column.data_type());
            let found: Vec<usize> = (0..1000).filter(|number| has(&left, *number)).collect();
            assert!(found.len() == values && found[0] == 500, "{:?}: {found:?}", column.data_type());
        }
    }
}
