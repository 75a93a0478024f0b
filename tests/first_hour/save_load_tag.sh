# Train once, keep the model, and tag plain text with it in another process.
dualfield train train.conll --model kept.model --quiet
dualfield tag --model kept.model --text new.txt > tagged.txt
# Checks
grep -q "Kendal 21 27 B-LOC" tagged.txt
python -c "import dualfield; assert dualfield.load('kept.model').predict([['Greta', 'left', '.']])[0][0] == 'B-PER'"
