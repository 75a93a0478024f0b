#include "dualfield/text/templates.hpp"

#include <algorithm>
#include <utility>

#include "template_grams.hpp"

namespace dualfield {

namespace {

constexpr std::int32_t unmet = -2;  // a column that no one has looked up yet; Vocabulary::unknown is -1
static_assert(unmet < Vocabulary::unknown);
constexpr std::size_t bytes_ahead = 16;  // lookups between prefetching the bytes of an attribute and comparing them

// Attributes of tokens, or of pairs of neighbouring tokens: the lines that make them, and their vocabulary.
class Section {
  public:
    // `first_row` is the first token that gets attributes.
    Section(Vocabulary* vocabulary, bool grow, std::size_t first_row)
        : vocabulary_(vocabulary), grow_(grow), first_row_(first_row) {}

    std::int64_t n_unknown = 0;

    void add(const TemplateLine& line, SeriesSet& series) {
        add(line.macros, line.texts, Line::Where::anywhere, series);
        ++n_regular_;
    }
    void add_marks(SeriesSet& series) {
        add({}, {"__BOS__"}, Line::Where::at_first, series);
        add({}, {"__EOS__"}, Line::Where::at_last, series);
    }
    void forget() {
        for (Table& table : tables_) table.columns.clear();
    }

    void read(const SeriesSet& series, bool omit_outside, std::size_t length, RowSink& sink);

  private:
    struct Line {
        enum class Where { anywhere, at_first, at_last };
        SeriesSet::Place place;
        std::vector<Piece> pieces;
        Where where;
        std::size_t table, slot;  // its columns are tables_[table].columns[number of the series][slot]
    };
    // The columns of all lines that ask a series. The lines of a token and of its neighbours ask for the same numbers,
    // so what belongs to a number lies side by side.
    struct Table {
        std::size_t series;
        std::size_t n_lines;
        std::vector<std::int32_t> columns;  // [numbers of the series][n_lines]
    };
    // A line in the sentence that is being read.
    struct Cursor {
        const std::int32_t* ids;  // of the series, the number for token t at t + delta
        std::ptrdiff_t delta;
        const std::int32_t* columns;
        std::size_t n_lines;
        std::ptrdiff_t first, last;  // the tokens that get an attribute
        std::int32_t id(std::ptrdiff_t token) const noexcept { return ids[token + delta]; }
        std::int32_t column(std::ptrdiff_t token) const noexcept {
            return columns[static_cast<std::size_t>(id(token)) * n_lines];
        }
    };
    struct Pending {
        std::size_t entry;  // where the column is to be written
        std::size_t line;
        std::int32_t id;
        std::size_t start, stop;  // of the attribute in composed_
        std::uint64_t hash;
    };

    void add(const std::vector<Macro>& macros, const std::vector<std::string>& texts, Line::Where where,
             SeriesSet& series);
    void place_cursors(const SeriesSet& series, bool omit_outside, std::ptrdiff_t length);
    void look_up(std::ptrdiff_t length, std::int32_t* columns);
    void resolve(const SeriesSet& series, std::int32_t* columns);
    void leave_out_unknown(std::int32_t* columns);

    Vocabulary* vocabulary_;
    bool grow_;
    std::size_t first_row_;
    std::vector<Line> lines_;
    std::vector<Table> tables_;
    std::size_t n_regular_ = 0;  // lines that are not marks; they come first

    std::vector<Cursor> cursors_;
    std::vector<Pending> pending_;
    TextBuffer composed_;
    std::vector<std::int32_t> row_sizes_;
};

void Section::add(const std::vector<Macro>& macros, const std::vector<std::string>& texts, Line::Where where,
                  SeriesSet& series) {
    const SeriesSet::Place place = series.add(macros);
    const auto same = [&place](const Table& table) { return table.series == place.series; };
    const auto table = static_cast<std::size_t>(std::find_if(tables_.begin(), tables_.end(), same) - tables_.begin());
    if (table == tables_.size()) tables_.push_back({place.series, 0, {}});
    lines_.push_back({place, {texts.begin(), texts.end()}, where, table, tables_[table].n_lines++});
}

void Section::place_cursors(const SeriesSet& series, bool omit_outside, std::ptrdiff_t length) {
    for (Table& table : tables_) {
        table.columns.resize(static_cast<std::size_t>(series.size(table.series)) * table.n_lines, unmet);
        for (const std::int32_t id : series.numbers(table.series))
            prefetch_line(table.columns.data() + static_cast<std::size_t>(id) * table.n_lines);
    }
    cursors_.clear();
    for (const Line& line : lines_) {
        const SeriesSet::Place& place = line.place;
        const Table& table = tables_[line.table];
        std::ptrdiff_t first = static_cast<std::ptrdiff_t>(first_row_), last = length;
        if (omit_outside) {
            first = std::max<std::ptrdiff_t>(first, -place.lowest);
            last = std::min<std::ptrdiff_t>(last, length - place.highest);
            if (place.always_outside || length < place.shortest) last = first;
        }
        if (line.where == Line::Where::at_first) last = 1;
        if (line.where == Line::Where::at_last) first = length - 1;
        cursors_.push_back({series.numbers(place.series).data(), place.shift - series.first(place.series),
                            table.columns.data() + line.slot, table.n_lines, first, last});
    }
}

// Writes the column of every attribute of the sentence, or unmet, and remembers where the latter stand.
void Section::look_up(std::ptrdiff_t length, std::int32_t* columns) {
    // Between these tokens every regular line makes an attribute and no mark does.
    std::ptrdiff_t first = lines_.size() > n_regular_ ? 1 : 0, last = length - first;
    for (std::size_t k = 0; k < n_regular_; ++k) {
        first = std::max(first, cursors_[k].first);
        last = std::min(last, cursors_[k].last);
    }
    std::size_t count = 0;
    for (std::ptrdiff_t t = 0; t < length; ++t) {
        const std::size_t start = count;
        if (t >= first && t < last) {
            std::int32_t lowest = 0;
            for (std::size_t k = 0; k < n_regular_; ++k) {
                const std::int32_t column = cursors_[k].column(t);
                columns[start + k] = column;
                lowest = std::min(lowest, column);
            }
            count += n_regular_;
            if (lowest == unmet)
                for (std::size_t k = 0; k < n_regular_; ++k)
                    if (columns[start + k] == unmet) pending_.push_back({start + k, k, cursors_[k].id(t), 0, 0, 0});
        } else {
            for (std::size_t k = 0; k < cursors_.size(); ++k) {
                if (t < cursors_[k].first || t >= cursors_[k].last) continue;
                columns[count] = cursors_[k].column(t);
                if (columns[count] == unmet) pending_.push_back({count, k, cursors_[k].id(t), 0, 0, 0});
                ++count;
            }
        }
        row_sizes_.push_back(static_cast<std::int32_t>(count - start));
    }
}

// Composes what was not met before and asks the vocabulary: first all slots are prefetched, then the bytes a few
// attributes ahead. The order is that of the attributes, so that new columns are numbered by first appearance.
void Section::resolve(const SeriesSet& series, std::int32_t* columns) {
    composed_.clear();
    for (Pending& one : pending_) {
        one.start = composed_.size();
        series.spell(lines_[one.line].place.series, one.id, lines_[one.line].pieces, composed_);
        one.stop = composed_.size();
    }
    for (Pending& one :
         pending_) {  // in a loop of its own: bytes just written in small pieces are slow to read as words
        one.hash = hash_text(composed_.text(one.start, one.stop));
        vocabulary_->prefetch_slot(one.hash);
    }
    for (std::size_t i = 0; i < pending_.size(); ++i) {
        if (i + bytes_ahead < pending_.size()) vocabulary_->prefetch_bytes(pending_[i + bytes_ahead].hash);
        const Pending& one = pending_[i];
        const Line& line = lines_[one.line];
        Table& table = tables_[line.table];
        std::int32_t& column = table.columns[static_cast<std::size_t>(one.id) * table.n_lines + line.slot];
        if (column == unmet) {  // else the sentence has it twice
            const std::string_view text = composed_.text(one.start, one.stop);
            column = grow_ ? vocabulary_->insert(text, one.hash) : vocabulary_->find(text, one.hash);
        }
        columns[one.entry] = column;
    }
    pending_.clear();
}

void Section::leave_out_unknown(std::int32_t* columns) {
    std::size_t at = 0, kept = 0;
    for (std::int32_t& size : row_sizes_) {
        const std::size_t stop = at + static_cast<std::size_t>(size), start = kept;
        for (; at < stop; ++at) {
            columns[kept] = columns[at];
            kept += columns[at] != Vocabulary::unknown;
        }
        size = static_cast<std::int32_t>(kept - start);
    }
    n_unknown += static_cast<std::int64_t>(at - kept);
}

void Section::read(const SeriesSet& series, bool omit_outside, std::size_t length, RowSink& sink) {
    row_sizes_.clear();
    pending_.clear();
    std::int32_t* const columns = sink.room(length * lines_.size());
    if (length > 0) {
        place_cursors(series, omit_outside, static_cast<std::ptrdiff_t>(length));
        look_up(static_cast<std::ptrdiff_t>(length), columns);
        resolve(series, columns);
        if (!grow_) leave_out_unknown(columns);
    }
    sink.finish(row_sizes_);
}

}  // namespace

class TemplateReader::Engine {
  public:
    Engine(const Template& form, const Characters& characters, Vocabulary& nodes, Vocabulary* pairs, bool grow,
           std::size_t most_keys)
        : series(form, characters),
          of_nodes(&nodes, grow, 0),
          of_pairs(pairs, grow, 1),
          omit_outside_(form.omit_outside),
          most_keys_(most_keys) {
        for (const TemplateLine& line : form.lines) {
            if (line.of_nodes) of_nodes.add(line, series);
            if (line.of_pairs) of_pairs.add(line, series);
        }
        if (form.mark_ends) of_nodes.add_marks(series);
    }

    void add_sentence(const std::int32_t* ids, std::size_t length, RowSink& nodes, RowSink* pairs) {
        if (length > 0) series.read(ids, length);
        of_nodes.read(series, omit_outside_, length, nodes);
        if (pairs != nullptr) of_pairs.read(series, omit_outside_, length, *pairs);
    }

    void trim() {
        if (series.n_keys() <= most_keys_) return;
        series.clear();
        of_nodes.forget();
        of_pairs.forget();
    }

    SeriesSet series;
    Section of_nodes, of_pairs;

  private:
    bool omit_outside_;
    std::size_t most_keys_;
};

TemplateReader::TemplateReader(const Template& form, const Characters& characters, Vocabulary& nodes, Vocabulary* pairs,
                               bool grow, std::size_t most_keys)
    : engine_(std::make_unique<Engine>(form, characters, nodes, pairs, grow, most_keys)) {}
TemplateReader::~TemplateReader() = default;

std::span<const std::int32_t> TemplateReader::columns() const noexcept {
    return engine_->series.columns();
}
Vocabulary& TemplateReader::values(std::size_t which) noexcept {
    return engine_->series.values(which);
}
void TemplateReader::add_sentence(const std::int32_t* ids, std::size_t length, RowSink& nodes, RowSink* pairs) {
    engine_->add_sentence(ids, length, nodes, pairs);
}
void TemplateReader::trim() {
    engine_->trim();
}
std::int64_t TemplateReader::n_unknown_nodes() const noexcept {
    return engine_->of_nodes.n_unknown;
}
std::int64_t TemplateReader::n_unknown_pairs() const noexcept {
    return engine_->of_pairs.n_unknown;
}

}  // namespace dualfield
